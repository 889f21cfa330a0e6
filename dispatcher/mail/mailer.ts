import type { Clock } from "../../src/lib/clock.ts";
import { isMailAddress } from "../../src/lib/email.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import { openMail, type MailMessage } from "../../src/outbox/mail.ts";
import { SWEEP_MS } from "../store/sweep.ts";
import { decideMail, decideUnsent, type MailDecision, type MailOutcome } from "./decide.ts";
import type { ClaimedMail, MailStore } from "./queries.ts";
import { MAIL_CONNECTIONS, type MailTransport } from "./transport.ts";

interface MailerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly box: SecretBox;
  readonly store: MailStore;
  readonly transport: MailTransport;
  readonly retryDelaysMs: readonly number[];
}

const HELD_OUTCOME: MailOutcome = {
  kind: "failed",
  errorCode: "company_inactive",
  lastError: "The recipient, or the company that the mail is about, is not active.",
};

/** The dispatcher that holds this shard sends the mails. */
export const MAIL_SHARD = 0;
/** The pause in milliseconds before a commit is retried while PostgreSQL does not answer. */
const COMMIT_RETRY_MS = 100;

/**
 * Claims due mails and sends them. A mail leaves the queue in a commit after the server accepted it. If that commit
 * fails for good, the claim ends and the mail is sent again under the same Message-ID, so no mail is lost.
 */
export class Mailer {
  readonly #deps: MailerDeps;
  readonly #broken = new AbortController();
  #underWay = 0;
  #looking = false;
  #rescan = false;
  #stopping = false;

  constructor(deps: MailerDeps) {
    this.#deps = deps;
  }

  /** Whether a mail is being claimed or sent. */
  get busy(): boolean {
    return this.#looking || this.#underWay > 0;
  }

  /**
   * Sweeps the queue until `ended` while `isInCharge` is true: claims due mails even if their wake was lost, then
   * sleeps until the next mail is due, for at most `SWEEP_MS`.
   */
  async run(ended: AbortSignal, isInCharge: () => boolean): Promise<void> {
    const { clock, log, store } = this.#deps;
    let restMs = SWEEP_MS;
    const sweep = async () => {
      restMs = SWEEP_MS;
      if (!isInCharge()) return;
      try {
        const nextAt = await store.nextAt();
        if (nextAt === undefined) return;
        const dueInMs = nextAt.getTime() - clock.now().getTime();
        if (dueInMs <= 0) this.wake();
        else restMs = Math.min(dueInMs, SWEEP_MS);
      } catch (error) {
        log.warn("mails.claim_failed", errorFields(error));
      }
    };
    await new Waiter().repeat({ clock, ended }, () => restMs, sweep);
  }

  /** Claims due mails. If that fails, the next sweep of the queue claims them. */
  wake(): void {
    this.#rescan = true;
    if (!this.#looking) void this.#look();
  }

  /** Stops claiming mails; the mails under way are still sent. */
  stop(): void {
    this.#stopping = true;
  }

  /** Aborts the mails under way and makes them due again, so that another process sends them. */
  abort(): void {
    this.#broken.abort();
  }

  async #look(): Promise<void> {
    const { clock, log, store } = this.#deps;
    this.#looking = true;
    // The loop runs again whenever a mail under way has ended, because the end sets `#rescan` and makes room for
    // another mail.
    while (this.#rescan && !this.#stopping && this.#underWay < MAIL_CONNECTIONS) {
      this.#rescan = false;
      try {
        const claimed = await store.claim(clock.now(), MAIL_CONNECTIONS - this.#underWay);
        for (const mail of claimed) void this.#process(mail);
      } catch (error) {
        log.warn("mails.claim_failed", errorFields(error));
      }
    }
    this.#looking = false;
  }

  async #process(mail: ClaimedMail): Promise<void> {
    const { log } = this.#deps;
    this.#underWay += 1;
    const decision = await this.#decide(mail);
    const fields = {
      mail_id: mail.id,
      kind: mail.kind,
      attempt: mail.attempt,
      outcome: decision.kind,
      ...("errorCode" in decision && { error_code: decision.errorCode }),
    };
    if (decision.kind === "sent") log.debug("mail.attempted", fields);
    else log.warn("mail.attempted", fields);
    await this.#commit(mail, decision);
    this.#underWay -= 1;
    this.wake();
  }

  async #decide(mail: ClaimedMail): Promise<MailDecision> {
    const { clock, transport, retryDelaysMs } = this.#deps;
    const message = this.#open(mail);
    const state = {
      ...mail,
      readable: message !== undefined,
      mailable: isMailAddress(message?.to ?? ""),
      retryDelaysMs,
    };
    const unsent = decideUnsent(state, clock.now());
    if (unsent !== undefined || message === undefined) return unsent ?? { kind: "interrupted" };
    const held = await this.#held({ ...message, ...mail });
    const outcome = held ?? (await transport.send({ ...mail, message }, this.#broken.signal));
    return decideMail(outcome, state, clock.now());
  }

  /** If a mail must not be sent now, returns an outcome as if the server had not taken it; otherwise undefined. */
  async #held(mail: Parameters<MailStore["isHeld"]>[0]): Promise<MailOutcome | undefined> {
    try {
      return (await this.#deps.store.isHeld(mail)) ? HELD_OUTCOME : undefined;
    } catch (error) {
      this.#deps.log.warn("mails.claim_failed", errorFields(error));
      return { kind: "aborted" };
    }
  }

  #open({ id, sealedMessage }: ClaimedMail): MailMessage | undefined {
    try {
      return openMail(this.#deps.box, id, sealedMessage);
    } catch {
      // The error is dropped, because it could quote the message. The decision reports the mail as unreadable.
      return undefined;
    }
  }

  /**
   * Commits the decision, and retries until PostgreSQL answers or the mails are aborted. After an abort the claim of
   * the mail expires.
   */
  async #commit(mail: ClaimedMail, decision: MailDecision): Promise<void> {
    const { clock, log, store } = this.#deps;
    const { signal } = this.#broken;
    do {
      try {
        await store.commit(mail, decision, clock.now());
        return;
      } catch (error) {
        log.warn("mail.commit_failed", { mail_id: mail.id, ...errorFields(error) });
        await clock.sleep(COMMIT_RETRY_MS, signal);
      }
    } while (!signal.aborted);
  }
}
