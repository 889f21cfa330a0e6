import type { Static } from "@sinclair/typebox";

import { parseInstant } from "../lib/clock.ts";
import { ApiError } from "../sdk/typescript/src/index.ts";
import type { ListedDeliveryObject } from "../webhooks/delivery-list-model.ts";
import type { AttemptObject, DeliveryObject } from "../webhooks/delivery-model.ts";
import type { SubscriptionWithSecret } from "../webhooks/model.ts";
import { connect, show, table, WEBHOOK, type Command, type ParsedArgs } from "./command.ts";
import { EXIT, Failure, type CommandContext, ulid, usage } from "./context.ts";
import { AGO, instant } from "./command.ts";
import { chooseSubscription, listSubscriptions, type Server } from "./server.ts";

export const webhooks: Command = {
  name: "webhooks",
  words: "",
  summary: "list your subscriptions",
  flags: {},
  wordCount: [0, 0],
  async run(context, given) {
    const all = await listSubscriptions(connect(context, given));
    const rows = all.map((one) => [
      one.id,
      one.delivery_kind,
      one.is_active ? "active" : "disabled",
      one.webhook_url,
      one.label,
    ]);
    show(context, given, all, rows.length === 0 ? "You have no subscriptions." : table(rows));
    return EXIT.ok;
  },
};

export const subscribe: Command = {
  name: "subscribe",
  words: "URL",
  summary: "create a subscription for all events at an https URL, and show its secret",
  more: `The secret is printed to the terminal: store it where your receiver reads it. To set filters, minimal bodies or
batches, use the dashboard or the API.`,
  flags: {
    label: { type: "string", help: "name of the subscription; default: the host of the URL" },
  },
  wordCount: [1, 1],
  async run(context, given) {
    const [url = ""] = given.words;
    const label = given.text("label") ?? (URL.canParse(url) ? new URL(url).host : url);
    const server = connect(context, given);
    const made = await create(server, { label, webhook_url: url, delivery_kind: "immediate" });
    show(context, given, made, `Created subscription ${made.id}. Its secret:\n${made.secret}`);
    return EXIT.ok;
  },
};

/** Creates a subscription. If the partner already has an immediate one, the failure says where to change it. */
async function create(server: Server, body: object): Promise<Created> {
  try {
    return await server.ask<Created>("POST /partner/webhooks", { body });
  } catch (error) {
    const { cause } = error instanceof Failure ? error : {};
    if (!(cause instanceof ApiError) || cause.code !== "slot_occupied") throw error;
    throw new Failure(
      EXIT.failed,
      `You already have an immediate subscription (see reviewrelay webhooks). Change or delete it at ${server.root}/dashboard.`,
    );
  }
}

export const trigger: Command = {
  name: "trigger",
  words: "[EVENT]",
  summary: "send a signed test event; default: webhook.test",
  flags: WEBHOOK,
  wordCount: [0, 1],
  async run(context, given) {
    const { server, id: subscription } = await subscriptionOf(context, given);
    const [event] = given.words;
    const answer = await server.ask<{ event_id: string }>("POST /partner/webhooks/{id}/test", {
      path: { id: subscription },
      ...(event !== undefined && { body: { event } }),
    });
    const { event_id: id } = answer;
    show(
      context,
      given,
      answer,
      `Queued ${id}. To see the result, run: reviewrelay deliveries ${id}`,
    );
    return EXIT.ok;
  },
};

export const deliveries: Command = {
  name: "deliveries",
  words: "[EVENT_ID]",
  summary: "list attempts, newest first, or show one delivery with its body",
  flags: {
    ...WEBHOOK,
    event: { type: "string", help: "only attempts of this event" },
    outcome: { type: "string", help: "delivered, retry, failed or interrupted" },
    since: { type: "string", help: AGO },
    until: { type: "string", help: AGO },
    sequence: { type: "string", help: "list deliveries with these numbers, such as 17-25" },
    limit: { type: "string", help: "1 to 100, default: 20" },
  },
  wordCount: [0, 1],
  async run(context, given) {
    const { server, id } = await subscriptionOf(context, given);
    const [eventId] = given.words;
    if (eventId !== undefined) {
      const path = { id, eventId: ulid(eventId) };
      const one = await server.ask<Delivery>("GET /partner/webhooks/{id}/deliveries/{eventId}", {
        path,
      });
      show(context, given, one, deliveryText(one));
      return EXIT.ok;
    }
    const query = {
      limit: given.number("limit", [1, 100]) ?? 20,
      event: given.text("event"),
      outcome: given.text("outcome"),
      since: instant(context, given, "since"),
      until: instant(context, given, "until"),
    };
    const sequence = given.text("sequence");
    if (sequence !== undefined) {
      const { data } = await server.ask<{ data: ListedDelivery[] }>(
        "GET /partner/webhooks/{id}/messages",
        { path: { id }, query: { ...query, sequence } },
      );
      const rows = data.map((one) => [`${one.sequence}`, one.event, one.event_id, one.state]);
      show(context, given, data, rows.length === 0 ? "No deliveries found." : table(rows));
      return EXIT.ok;
    }
    const { data } = await server.ask<{ data: Attempt[] }>(
      "GET /partner/webhooks/{id}/deliveries",
      { path: { id }, query },
    );
    const rows = data.map(attemptRow);
    show(context, given, data, rows.length === 0 ? "No attempts found." : table(rows));
    return EXIT.ok;
  },
};

export const redeliver: Command = {
  name: "redeliver",
  words: "EVENT_ID … | --sequence 17-25",
  summary: "resend events, each as a new round",
  flags: {
    ...WEBHOOK,
    sequence: {
      type: "string",
      help: "number of an event (X-SVC-Sequence), or a range of at most 100",
    },
  },
  wordCount: [0, 1_000],
  async run(context, given) {
    const ids = given.words.map(ulid);
    const sequence = given.text("sequence");
    if ((sequence === undefined) === (ids.length === 0))
      throw usage("Name the events either by their ids or by --sequence 17-25.");
    const sequences = sequence === undefined ? undefined : numbersIn(sequence);
    const { server, id } = await subscriptionOf(context, given);
    if (sequences !== undefined) {
      const path = { id };
      const answer = await server.ask<{ queued: number }>("POST /partner/webhooks/{id}/redeliver", {
        path,
        body: { sequences },
      });
      show(context, given, answer, `Queued ${answer.queued}.`);
      return EXIT.ok;
    }
    for (const eventId of ids)
      await server.ask("POST /partner/webhooks/{id}/deliveries/{eventId}/redeliver", {
        path: { id, eventId },
      });
    show(context, given, { queued: ids }, ids.map((eventId) => `Queued ${eventId}.`).join("\n"));
    return EXIT.ok;
  },
};

/** The most numbers of one redelivery (contract 6.14). */
const MAX_NUMBERS = 100;

/** Returns the numbers of events that a text such as `17` or `17-25` names. */
function numbersIn(text: string): number[] {
  const [, first, last = first] = /^([1-9]\d{0,14})(?:-(\d{1,15}))?$/.exec(text) ?? [];
  const length = Number(last) - Number(first) + 1;
  if (length >= 1 && length <= MAX_NUMBERS)
    return Array.from({ length }, (_, i) => Number(first) + i);
  throw usage(`--sequence ${text} must be a number, or a range of at most ${MAX_NUMBERS}.`);
}

export const recover: Command = {
  name: "recover",
  words: "--since INSTANT [--until INSTANT]",
  summary: "resend all undelivered events in a period, in order",
  flags: {
    ...WEBHOOK,
    since: { type: "string", help: AGO },
    until: { type: "string", help: `${AGO}; default: now` },
  },
  wordCount: [0, 0],
  async run(context, given) {
    const since = instant(context, given, "since");
    const until = instant(context, given, "until");
    const from = parseInstant(since);
    if (from === undefined)
      throw usage("Give the start of the period: --since 2h, or a date and time.");
    if (from >= context.clock.now()) throw usage(`--since ${since} must be in the past.`);
    const { server, id } = await subscriptionOf(context, given);
    const body = { since, ...(until !== undefined && { until }) };
    let total = 0;
    // The API limits how many events one request queues, so the command repeats the request until no event is left.
    for (let isMore = true; isMore && !context.signal.aborted;) {
      const { queued } = await server.ask<{ queued: number }>(
        "POST /partner/webhooks/{id}/recover",
        { path: { id }, body },
      );
      total += queued;
      isMore = queued > 0;
    }
    show(context, given, { queued: total }, `Queued ${total}.`);
    return EXIT.ok;
  },
};

async function subscriptionOf(
  context: CommandContext,
  given: ParsedArgs,
): Promise<{ server: Server; id: string }> {
  const server = connect(context, given);
  const { id } = await chooseSubscription(server, given.text("webhook"));
  return { server, id };
}

type Created = Static<typeof SubscriptionWithSecret>;
type Attempt = Static<typeof AttemptObject>;
type Delivery = Static<typeof DeliveryObject>;
type ListedDelivery = Static<typeof ListedDeliveryObject>;

function attemptRow(one: Attempt): string[] {
  const { started_at, event, event_id, attempt, outcome, status_code, error_code, tls_reason } =
    one;
  const answer = String(
    status_code ?? ([error_code, tls_reason].filter((it) => it !== null).join(":") || "-"),
  );
  const took = `${one.duration_ms} ms`;
  return [started_at, event, event_id, `attempt ${attempt}`, outcome, answer, took];
}

function deliveryText({ event, event_id, state, attempts }: Delivery): string {
  const body = attempts.at(-1)?.request_body ?? undefined;
  const rows = attempts.length === 0 ? [] : [table(attempts.map(attemptRow))];
  return [`${event} ${event_id}: ${state}`, ...rows, ...(body === undefined ? [] : [body])].join(
    "\n",
  );
}
