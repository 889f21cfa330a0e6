import { isoInstant } from "../../src/lib/clock.ts";
import { composeBody as composeRecorded } from "../../src/outbox/composer.ts";
import type { PayloadMode } from "../../src/outbox/event.ts";
import type { BodySource } from "../actor/entry.ts";

/**
 * The JSON body of one attempt: of an event that was recorded as its composer has it (src/outbox/composer.ts), of a test
 * event from the entry alone.
 */
export function composeBody(source: BodySource, mode: PayloadMode, deliveredAt: Date): string {
  if (source.kind === "recorded") return composeRecorded(source.facts, mode, deliveredAt);
  return mode === "full" ? fullTest(source, deliveredAt) : minimalTest(source);
}

type TestSource = BodySource & { kind: "test" };

function fullTest(source: TestSource, deliveredAt: Date): string {
  return JSON.stringify({
    event: "webhook.test",
    event_id: source.eventId,
    occurred_at: isoInstant(source.occurredAt),
    delivered_at: isoInstant(deliveredAt),
    partner: { id: source.partnerId },
    actor: { type: "system", id: null, name: "webhook.test" },
    review: {
      id: 0,
      external_review_id: "test",
      store_id: 0,
      review_site_id: 0,
      source_platform: "test",
      rate: 5,
      reviewer: null,
    },
    metadata: { test: true },
  });
}

function minimalTest(source: TestSource): string {
  return JSON.stringify({
    event: "webhook.test",
    event_id: source.eventId,
    occurred_at: isoInstant(source.occurredAt),
    partner: { id: source.partnerId },
    review: { id: 0 },
    review_history_id: 0,
  });
}
