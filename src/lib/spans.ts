import type { Attributes, Link } from "@opentelemetry/api";

import type { Clock } from "./clock.ts";
import { VERSION } from "./version.ts";

/** Something that was done for an event. */
interface Span {
  readonly eventId: string;
  readonly name: string;
  /** root: the request that brought the event; client: a request of ours; otherwise something inside the process. */
  readonly kind?: "root" | "client";
  readonly attributes?: Attributes;
  readonly failed?: boolean;
  /** The value of a `traceparent` that the request came with. */
  readonly caller?: string | null;
}

/** Sends spans to a collector now and then; one that is away costs those that it does not get. */
export interface Spans {
  /** Starts a span. The answer ends it; where it was about several events, it is called for each of them. */
  begin(): (span: Span) => void;
  close(): Promise<void>;
}

/** So long a process that ends waits for the collector. */
const CLOSE_MS = 1_000;

/**
 * Loads the SDK, which nobody pays for who traces nothing. The share is decided by the trace id alone, so that all
 * processes trace the same events.
 */
export async function openSpans(
  { url, share }: { readonly url: string; readonly share: number },
  role: string,
  clock: Clock,
): Promise<Spans> {
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]);
  const random = new sdk.RandomIdGenerator();
  let given: { traceId: string; rootId: string } | undefined;
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      "service.name": `reviewrelay-${role}`,
      "service.version": VERSION,
      "process.pid": process.pid,
    }),
    sampler: new sdk.TraceIdRatioBasedSampler(share),
    idGenerator: {
      generateTraceId: () => given?.traceId ?? random.generateTraceId(),
      generateSpanId: () => given?.rootId ?? random.generateSpanId(),
    },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }) })],
  });
  const tracer = provider.getTracer("reviewrelay");
  const kinds = { root: api.SpanKind.SERVER, client: api.SpanKind.CLIENT };
  const add = (span: Span, startMs: number) => {
    const { eventId, name, kind, attributes = {}, failed = false, caller } = span;
    const ids = traceIdsOf(eventId);
    if (ids === undefined) return;
    const { traceId, rootId: spanId } = ids;
    const parent = { traceId, spanId, traceFlags: api.TraceFlags.SAMPLED, isRemote: true };
    const context =
      kind === "root" ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, parent);
    const endMs = clock.now().getTime();
    const options = {
      kind: kind === undefined ? api.SpanKind.INTERNAL : kinds[kind],
      startTime: endMs - (clock.monotonicMs() - startMs),
      attributes: { "reviewrelay.event_id": eventId, ...attributes },
      links: linksOf(caller),
    };
    given = kind === "root" ? ids : undefined;
    const made = tracer.startSpan(name, options, context);
    given = undefined;
    if (failed) made.setStatus({ code: api.SpanStatusCode.ERROR });
    made.end(endMs);
  };
  return {
    begin() {
      const startMs = clock.monotonicMs();
      return (span) => add(span, startMs);
    },
    async close() {
      await Promise.race([provider.shutdown().catch(() => {}), clock.sleep(CLOSE_MS)]);
    },
  };
}

function linksOf(caller: string | null | undefined): Link[] {
  const context = readTraceparent(caller ?? null);
  return context === undefined ? [] : [{ context }];
}

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
