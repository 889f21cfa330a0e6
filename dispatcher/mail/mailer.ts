import { addMs, type Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { decideMail, decideUnsent, type MailDecision } from "./decide.ts";
import type { MailCommit, MailStore, QueuedMail } from "./store.ts";
import { MAIL_CONNECTIONS, type MailTransport } from "./transport.ts";

/** What the mailer asks and tells the process that it is part of. */
export interface MailerListener {
  /** The dispatcher id to commit under; undefined while the shard of mail is not ours or sending is not safe. */
  holder(): string | undefined;
  /** The mailer has to be woken at that instant. */
  planNext(at: Date): void;
  /** Nothing is under way any more, so the shard of mail may be given up. */
  idle(): void;
  /** Somebody declared the dispatcher of this id dead. */
  fenced(id: string): void;
}

interface MailerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: MailStore;
  /** Undefined where no mail server is set: mails wait. */
  readonly transport: MailTransport | undefined;
  readonly retryDelaysMs: readonly number[];
}

/** How soon a commit, or a look at the queue, is tried again when Postgres does not answer. */
const COMMIT_RETRY_MS = 100;
const LOOK_RETRY_MS = 1_000;
/** How long the drain waits for the mails that it broke off. */
const ABORT_MS = 1_000;

/**
 * Sends the queued mails while this process holds the shard of mail. A mail leaves the queue in a commit after the
 * server took it: if that commit never comes, the mail is repeated under the same Message-ID, and none is lost.
 */
export class Mailer {
  readonly #deps: MailerDeps;
  readonly #listener: MailerListener;
  readonly #underWay = new Map<string, Promise<void>>();
  #looking = false;
  #lookAgain = false;
  /** More may be due than there was room for. */
  #more = false;
  #stopping = false;
  #hasWarned = false;
  #abort = new AbortController();

  constructor(deps: MailerDeps, listener: MailerListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  /** Whether the shard of mail has to stay ours. */
  get busy(): boolean {
    return this.#underWay.size > 0;
  }

  /** Looks at the queue, because mail may be due. */
  wake(): void {
    const { transport, log } = this.#deps;
    if (this.#stopping) return;
    if (transport === undefined) {
      if (!this.#hasWarned) log.warn("mail.unconfigured", { setting: "SMTP_URL" });
      this.#hasWarned = true;
    } else if (this.#looking) this.#lookAgain = true;
    else void this.#lookWhileAsked(transport);
  }

  /** Breaks off what is under way: the lease is lost, so another process sends it. */
  startOver(): void {
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#more = false;
  }

  /** Begins nothing new, lets the mails under way end, and breaks off what takes longer than `ms`. */
  async drain(ms: number): Promise<void> {
    this.#stopping = true;
    await this.#untilIdle(ms);
    this.#abort.abort();
    await this.#untilIdle(ABORT_MS);
  }

  async #lookWhileAsked(transport: MailTransport): Promise<void> {
    this.#looking = true;
    do {
      this.#lookAgain = false;
      await this.#look(transport);
    } while (this.#lookAgain);
    this.#looking = false;
  }

  async #look(transport: MailTransport): Promise<void> {
    const { clock, log, store } = this.#deps;
    const id = this.#listener.holder();
    const room = MAIL_CONNECTIONS - this.#underWay.size;
    this.#more = true;
    // The mail that ends next makes room, and has the queue looked at again.
    if (id === undefined || room === 0) return;
    try {
      // The one more than there is room for says when to look next.
      const mails = await store.next(room + 1, [...this.#underWay.keys()]);
      // The lease may have gone meanwhile; then the next owner of the shard looks.
      if (id !== this.#listener.holder() || this.#stopping) return;
      const now = clock.now();
      const due = mails.filter((mail) => mail.dueAt <= now);
      const later = mails.find((mail) => mail.dueAt > now);
      this.#more = due.length > room;
      for (const mail of due.slice(0, room)) this.#begin(mail, id, transport);
      if (later !== undefined) this.#listener.planNext(later.dueAt);
    } catch (error) {
      log.warn("mails.unread", errorFields(error));
      this.#listener.planNext(addMs(clock.now(), LOOK_RETRY_MS));
    }
  }

  #begin(mail: QueuedMail, id: string, transport: MailTransport): void {
    const work = this.#process(mail, id, transport).finally(() => {
      this.#underWay.delete(mail.id);
      if (this.#more) this.wake();
      if (!this.busy) this.#listener.idle();
    });
    this.#underWay.set(mail.id, work);
  }

  async #process(mail: QueuedMail, id: string, transport: MailTransport): Promise<void> {
    const { log } = this.#deps;
    const { signal } = this.#abort;
    const decision = await this.#decide(mail, transport, signal);
    const fields = {
      mail_id: mail.id,
      kind: mail.kind,
      attempt: mail.attempt,
      outcome: decision.kind,
      ...("errorCode" in decision && { error_code: decision.errorCode }),
    };
    if (decision.kind === "sent") log.debug("mail.attempted", fields);
    else log.warn("mail.attempted", fields);
    if (decision.kind === "interrupted") return;
    const held = await this.#commitUntilAnswered({ mail, decision, id }, signal);
    if (held === false) this.#listener.fenced(id);
    // The commit may have taken so long that the mail is due by now, and nobody else has the queue looked at again.
    if (held && "dueAt" in decision) this.#listener.planNext(decision.dueAt);
  }

  async #decide(
    mail: QueuedMail,
    transport: MailTransport,
    signal: AbortSignal,
  ): Promise<MailDecision> {
    const { clock, retryDelaysMs } = this.#deps;
    const { id, attempt, createdAt, expiresAt, message } = mail;
    const state = { attempt, expiresAt, readable: message !== undefined, retryDelaysMs };
    const unsent = decideUnsent(state, clock.now());
    if (unsent !== undefined || message === undefined) return unsent ?? { kind: "interrupted" };
    const outcome = await transport.send({ id, createdAt, message }, signal);
    return decideMail(outcome, state, clock.now());
  }

  /** Repeats until Postgres answers, or `signal` says that the mail is another process's: then answers undefined. */
  async #commitUntilAnswered(
    { mail, decision, id }: { mail: QueuedMail; decision: MailCommit; id: string },
    signal: AbortSignal,
  ): Promise<boolean | undefined> {
    const { clock, log, store } = this.#deps;
    while (!signal.aborted) {
      try {
        return await store.commit(id, mail, decision, clock.now());
      } catch (error) {
        log.warn("mail.uncommitted", { mail_id: mail.id, ...errorFields(error) });
        await clock.sleep(COMMIT_RETRY_MS, signal);
      }
    }
    return undefined;
  }

  async #untilIdle(ms: number): Promise<void> {
    const ended = new AbortController();
    const idle = Promise.all(this.#underWay.values());
    await Promise.race([idle, this.#deps.clock.sleep(ms, ended.signal)]);
    ended.abort();
  }
}
