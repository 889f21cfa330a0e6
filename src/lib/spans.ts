import { checkServerIdentity } from "./certificates.ts";
import type { Attributes, Link } from "@opentelemetry/api";

import type { Clock } from "./clock.ts";
import { VERSION } from "./version.ts";

/** One timed unit of work for an event, as OpenTelemetry defines it. */
interface Span {
  readonly eventId: string;
  readonly name: string;
  /**
   * The kind of work: `root` is the request that reported the event, `client` is an outgoing request. Absent for work
   * inside of the process.
   */
  readonly kind?: "root" | "client";
  readonly attributes?: Attributes;
  readonly failed?: boolean;
  /** The `traceparent` header of the request that caused the work. */
  readonly caller?: string | null;
}

/** Exports spans to a collector in batches. Spans are lost while the collector is unreachable. */
export interface Spans {
  /** Starts a span. The returned function ends it; for work about several events it is called once for each event. */
  begin(): (span: Span) => void;
  close(): Promise<void>;
}

/** Maximum time in ms that the ending process waits for the collector. */
const CLOSE_MS = 1_000;

/**
 * Loads the OpenTelemetry SDK dynamically, so that a process without tracing does not spend memory and time on it.
 * Sampling depends only on the trace id, so that all processes trace the same events.
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
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new OTLPTraceExporter({
          url,
          httpAgentOptions: { keepAlive: true, checkServerIdentity },
        }),
      }),
    ],
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
/** Lengths of a trace id and a span id in hex digits. */
const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;

interface TraceIds {
  readonly traceId: string;
  /** Id of the span of the request that reported the event; the parent of all other spans. */
  readonly rootId: string;
}

/**
 * Derives the trace ids of an event from its id. A ULID has the same 128 bits as a trace id, so every process that
 * knows the event id also knows its trace, and nothing needs to be stored. Returns undefined for an id that is not a
 * ULID.
 */
export function traceIdsOf(eventId: string): TraceIds | undefined {
  if (!ULID.test(eventId)) return undefined;
  let bits = 0n;
  for (const digit of eventId) bits = (bits << 5n) | BigInt(DIGITS.indexOf(digit));
  const traceId = bits.toString(16).padStart(TRACE_DIGITS, "0");
  const rootId = traceId.slice(TRACE_DIGITS - SPAN_DIGITS);
  // An id that consists only of zeros is refused, because OpenTelemetry does not allow it.
  return /[^0]/.test(rootId) ? { traceId, rootId } : undefined;
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Parses a W3C Trace Context `traceparent` header; undefined if it is absent or malformed. */
export function readTraceparent(
  header: string | null,
): { traceId: string; spanId: string; traceFlags: number } | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (!/[^0]/.test(traceId) || !/[^0]/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}
