const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
/** Hex digits of a trace id, and of a span id. */
const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;

interface TraceIds {
  readonly traceId: string;
  /** Of the span of the request that brought the event: the parent of all others. */
  readonly rootId: string;
}

/**
 * The trace of an event. A ULID has the 128 bits of a trace id, so every process that knows the event knows its trace, and
 * nothing has to be kept with the entry. Undefined for what is no ULID.
 */
export function traceIdsOf(eventId: string): TraceIds | undefined {
  if (!ULID.test(eventId)) return undefined;
  let bits = 0n;
  for (const digit of eventId) bits = (bits << 5n) | BigInt(DIGITS.indexOf(digit));
  const traceId = bits.toString(16).padStart(TRACE_DIGITS, "0");
  const rootId = traceId.slice(TRACE_DIGITS - SPAN_DIGITS);
  // All zeros is the one id that none may have.
  return /[^0]/.test(rootId) ? { traceId, rootId } : undefined;
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Who called us, by the header of the W3C's Trace Context. */
export function readTraceparent(
  header: string | null,
): { traceId: string; spanId: string; traceFlags: number } | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (!/[^0]/.test(traceId) || !/[^0]/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}
