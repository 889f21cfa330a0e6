import type { NumberRange } from "../../../src/sdk/typescript/src/index.ts";
import type { Prng } from "../../simulation/prng.ts";
import type { CallOptions, Client } from "./client.ts";
import { nowMs } from "./now.ts";
import type { Partner } from "./tenants.ts";
import type { Operation } from "../../verdicts/facts.ts";

interface OperatorDeps {
  readonly client: Client;
  readonly random: Prng;
  readonly operations: Operation[];
  /** Returns a URL on a host that no subscription has used; undefined if there is none left. */
  readonly newUrl: () => string | undefined;
  /** Returns the numbers of the events that the receiver at a URL misses. */
  readonly missedAt: (url: string) => readonly NumberRange[];
}

type Kind = "immediate" | "batch";
type RuleInput = CallOptions & Required<Pick<CallOptions, "wants">>;

/** Filters that match only some of the writers' events. */
const FILTERS: readonly (readonly string[] | null)[] = [
  null,
  ["review_received", "profanity_detected"],
  ["review_updated", "review_pull_disconnected"],
];

/** The most numbers that one redelivery names, and that one page of deliveries shows. */
const REDELIVERED = 100;
const LISTED = 100;

/** Acts as one partner's owner: creates a subscription and performs the usual operations on it. */
export class Operator {
  readonly #deps: OperatorDeps;
  readonly #partner: Partner;
  readonly #kind: Kind;
  #id: string | undefined;
  #url = "";

  constructor(deps: OperatorDeps, partner: Partner, kind: Kind) {
    this.#deps = deps;
    this.#partner = partner;
    this.#kind = kind;
  }

  /**
   * Creates the subscription. Returns false if the request was rejected or its result is unknown; an unknown one
   * occupies the slot, so the partner has none.
   */
  async create(): Promise<boolean> {
    const { random, newUrl } = this.#deps;
    const url = newUrl();
    if (url === undefined) return false;
    const isBatch = this.#kind === "batch";
    const filter = isBatch || random.chance(0.6) ? null : random.pick(FILTERS);
    const body = {
      label: "Chaos",
      webhook_url: url,
      delivery_kind: this.#kind,
      ...(isBatch
        ? { batch_interval_hours: random.pick([1, 2]) }
        : {
            events: filter,
            ordering: random.pick(["subscription", "review"]),
            payload_mode: random.pick(["full", "full", "minimal"]),
            sequence_headers: random.chance(0.9),
          }),
    };
    const startedMs = nowMs();
    const { status, body: told } = await this.#ask("POST", "", { body, wants: [201] });
    if (status !== 201) return false;
    this.#id = String(told["id"]);
    this.#url = url;
    this.#note("create", { startedMs, status, filter, secret: String(told["secret"]) });
    return true;
  }

  /** Performs one random operation of an owner. */
  async act(): Promise<void> {
    if (this.#id === undefined) return;
    const { random } = this.#deps;
    const { status, body } = await this.#get();
    if (status !== 200) return;
    // Events come while it is disabled.
    if (body["is_active"] === false) return random.chance(0.5) ? this.#enable() : undefined;
    const act = random.pick([
      () => this.#rotate(),
      () => this.#rotate(),
      () => this.#update(),
      () => this.#update(),
      () => this.#recover(),
      () => this.askAgain(),
      () => this.#disable(),
      () => this.#test(),
      () => this.#test(),
      ...(random.chance(0.3) ? [() => this.#replace()] : []),
    ]);
    await act();
  }

  /** Performs one random read of an owner. */
  async look(): Promise<void> {
    if (this.#id === undefined) return;
    const look = this.#deps.random.pick([
      () => this.#get(),
      () => this.#ask("GET", "", { wants: [200] }),
      () => this.#ask("GET", `/${this.#id}/deliveries?per_page=100`, { wants: [200] }),
      () => this.#showMissed(),
    ]);
    await look();
  }

  /** Enables a subscription and removes its filter; returns false until that is certainly done. */
  async revive(): Promise<boolean> {
    if (this.#id === undefined) return true;
    const { status, body } = await this.#get();
    // A delete whose answer was lost may have been carried out.
    if (status === 404) this.#id = undefined;
    if (status !== 200) return false;
    if (body["is_active"] === false) await this.#enable();
    else if (body["events"] !== null) await this.#filter(null);
    else return true;
    return false;
  }

  /** Asks for the first events that the receiver has missed, as it would itself. */
  async askAgain(): Promise<void> {
    const missed = this.#deps.missedAt(this.#url);
    const numbers = missed.flatMap(([first, last]) =>
      Array.from({ length: last - first + 1 }, (_, i) => first + i),
    );
    if (numbers.length === 0) return;
    await this.#plain("redeliver", { body: { sequences: numbers.slice(0, REDELIVERED) } });
  }

  async #showMissed(): Promise<void> {
    const [range] = this.#deps.missedAt(this.#url);
    if (range === undefined) return;
    const [first, last] = [range[0], Math.min(range[1], range[0] + LISTED - 1)];
    await this.#ask("GET", `/${this.#id}/messages?sequence=${first}-${last}&limit=${LISTED}`, {
      wants: [200],
      fits: ({ data }) => {
        const shown = (data as { sequence: number }[]).map(({ sequence }) => sequence);
        const wanted = Array.from({ length: last - first + 1 }, (_, i) => first + i);
        return Bun.deepEquals(
          shown.toSorted((a, b) => a - b),
          wanted,
        );
      },
    });
  }

  #get() {
    const id = this.#id;
    return this.#ask("GET", `/${id}`, { wants: [200], fits: (body) => body["id"] === id });
  }

  async #enable(): Promise<void> {
    const held = this.#deps.random.pick(["deliver", "deliver", "skip"] as const);
    const startedMs = nowMs();
    const { status } = await this.#ask("POST", `/${this.#id}/enable`, {
      body: { held },
      wants: [200],
    });
    this.#note("enable", { startedMs, status, held });
  }

  async #disable(): Promise<void> {
    const startedMs = nowMs();
    const { status } = await this.#ask("POST", `/${this.#id}/disable`, { wants: [200] });
    this.#note("disable", { startedMs, status });
  }

  async #rotate(): Promise<void> {
    const startedMs = nowMs();
    const grace_period_hours = this.#deps.random.pick([0, 1]);
    const { status, body } = await this.#ask("POST", `/${this.#id}/rotate-secret`, {
      body: { grace_period_hours },
      wants: [200],
    });
    const secret = status === 200 ? { secret: String(body["secret"]) } : {};
    this.#note("rotate", { startedMs, status, ...secret });
  }

  async #update(): Promise<void> {
    const { random } = this.#deps;
    if (this.#kind === "immediate" && random.chance(0.7)) return this.#filter(random.pick(FILTERS));
    const body = { webhook_url: `${this.#url}/${random.int(1, 99)}` };
    const startedMs = nowMs();
    const { status } = await this.#ask("PATCH", `/${this.#id}`, { body, wants: [200] });
    this.#note("update", { startedMs, status });
  }

  async #filter(filter: readonly string[] | null): Promise<void> {
    const startedMs = nowMs();
    const body = { events: filter };
    const { status } = await this.#ask("PATCH", `/${this.#id}`, { body, wants: [200] });
    this.#note("update", { startedMs, status, filter });
  }

  async #recover(): Promise<void> {
    const since = new Date(nowMs() - 20_000).toISOString();
    await this.#plain("recover", { body: { since } });
  }

  async #test(): Promise<void> {
    await this.#plain("test");
  }

  /** Deletes the subscription and creates another one at a new address. */
  async #replace(): Promise<void> {
    const startedMs = nowMs();
    const { status } = await this.#ask("DELETE", `/${this.#id}`, { wants: [204] });
    this.#note("delete", { startedMs, status });
    if (status !== 204) return;
    this.#id = undefined;
    await this.create();
  }

  /** A disabled subscription answers 409: failures may have disabled it since the owner read it. */
  async #plain(kind: "test" | "recover" | "redeliver", options: CallOptions = {}): Promise<void> {
    const startedMs = nowMs();
    const allowed = { ...options, wants: [202, 409] };
    const { status } = await this.#ask("POST", `/${this.#id}/${kind}`, allowed);
    this.#note(kind, { startedMs, status });
  }

  #ask(method: string, path: string, options: RuleInput) {
    const { token } = this.#partner;
    return this.#deps.client.call(method, `/partner/webhooks${path}`, { token, ...options });
  }

  #note(
    kind: Operation["kind"],
    told: Omit<Operation, "kind" | "subscriptionId" | "endedMs">,
  ): void {
    const subscriptionId = this.#id ?? "";
    this.#deps.operations.push({ kind, subscriptionId, endedMs: nowMs(), ...told });
  }
}
