import examples from "../docs/event-examples.json";
import type { Json } from "../http/openapi/schemas.ts";
import type { EventValue, PayloadMode } from "../outbox/event.ts";

/** A body as it is sent, made by the composer itself (scripts/vectors.ts). */
export function exampleBodyOf(event: EventValue, mode: PayloadMode): Json {
  return JSON.parse(examples[event][mode]);
}
