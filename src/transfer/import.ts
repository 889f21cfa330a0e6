import type { Db, Tx } from "../../db/client.ts";
import { FIRST_OWN_ID } from "../../db/own-ids.ts";
import type { ImportCounts } from "../../db/schema/companies.ts";
import { recordAudit } from "../auth/queries/audit.ts";
import { completeEmails } from "../auth/queries/emails.ts";
import { examine } from "../http/fields.ts";
import type { Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { createProfanityFinder } from "../intake/profanity.ts";
import { fault, type Fault, type Outcome } from "./directory.ts";
import { type Kind, KINDS, LINES, type LineOf } from "./format.ts";
import { type Chunk, type FileLine, FileLines } from "./lines.ts";
import * as queries from "./queries/import.ts";
import * as access from "./take-access.ts";
import * as masterData from "./take-master-data.ts";
import {
  announce,
  takeFlags,
  takeHistory,
  takeNotes,
  takeResponses,
  takeReviews,
  type TakingReviews,
} from "./take-reviews.ts";

/** The most lines of one transaction. */
const CHUNK_LINES = 1_000;

export interface ImportDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly config: Pick<Config, "batchHourMs" | "egress">;
}

export interface ImportOptions {
  /** The path of the file, which is also the key of its progress. */
  readonly file: string;
  /** Checks every line and rolls everything back. */
  readonly isDryRun: boolean;
  /** Continues after the last committed line of an earlier run of the same file. */
  readonly resumes: boolean;
  /** Records history lines as actions that happen now, which webhooks, batches and mails tell of. */
  readonly announces: boolean;
  /** Goes on after faulty lines; otherwise the import stops at the chunk with the first one. */
  readonly skipsFaulty: boolean;
}

/** The number of handled lines of all, and those of this run with its duration. */
export interface Pace {
  readonly lines: number;
  readonly total: number;
  readonly linesOfRun: number;
  readonly elapsedMs: number;
}

export interface Report {
  readonly onFault: (fault: LineFault) => void;
  readonly onProgress: (pace: Pace) => void;
}

export interface ImportResult {
  readonly isWhole: boolean;
  readonly counts: ImportCounts;
}

/**
 * Imports a file of lines (contract 10.9). Each chunk is a transaction, in which its progress is saved, so that a run that
 * is killed can continue. Records that exist already stay as they are, so that a second run changes nothing.
 *
 * Throws an error if the file differs from the one that an earlier run has read.
 */
export async function importFile(
  deps: ImportDeps,
  options: ImportOptions,
  report: Report,
): Promise<ImportResult> {
  const { db } = deps;
  const { file, isDryRun } = options;
  await completeEmails(db);
  const lines = new FileLines(file, CHUNK_LINES);
  const survey = await surveyOf(lines);
  const before = options.resumes ? await queries.findProgress(db, file) : undefined;
  if (before !== undefined) await requireSame(lines, before);
  const run = new Run(deps, options, report, { total: survey.lines, before });
  // Ids that are drawn while the import runs must not be those of later lines. This is all that a dry run leaves behind.
  for (const [kind, id] of survey.maxIds) await queries.moveSequence(db, kind, id);
  return isDryRun ? run.dry(lines) : run.all(lines);
}

/** The file differs from the one whose import is to be continued. */
class ResumeError extends Error {}

async function requireSame(lines: FileLines, before: queries.Progress): Promise<void> {
  if ((await lines.digestOf(before.bytes)) !== before.digest)
    throw new ResumeError(
      `The first ${before.lines} lines differ from those that were imported; run the import without --resume.`,
    );
}

/**
 * Counts the lines, and finds the highest id of each kind below the ids of our own records, into which a sequence of a
 * table never moves. Lines that are no JSON are reported by the import.
 */
async function surveyOf(lines: FileLines) {
  const maxIds = new Map<string, number>();
  let count = 0;
  for await (const chunk of lines.chunks(0))
    for (const text of chunk.lines) {
      count++;
      const value = parsed(text);
      if (typeof value === "string") continue;
      const { kind, id } = value;
      if (typeof kind === "string" && typeof id === "number" && id < FIRST_OWN_ID)
        maxIds.set(kind, Math.max(id, maxIds.get(kind) ?? 0));
    }
  return { lines: count, maxIds };
}

/** Parses a line; returns why it is no object otherwise. */
function parsed(text: FileLine): Readonly<Record<string, unknown>> | string {
  if (typeof text !== "string") return text.fault;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return "must be a JSON object";
    return { ...value };
  } catch {
    return "is not JSON";
  }
}

/** A line with its number. `record` is its kind with its id, as far as it can be read. */
interface Place {
  readonly line: number;
  readonly kind: string;
  readonly record: string | undefined;
}

/** A line that its schema accepts. */
interface Read<K extends Kind = Kind> extends Place {
  readonly kind: K;
  readonly value: LineOf<K>;
}

type Handlers = {
  readonly [K in Kind]: (deps: TakingReviews, lines: readonly LineOf<K>[]) => Promise<Outcome[]>;
};
const HANDLERS: Handlers = {
  plan: masterData.takePlans,
  partner: masterData.takePartners,
  account: masterData.takeAccounts,
  store: masterData.takeStores,
  review_site: masterData.takeSites,
  connection: masterData.takeConnections,
  user: access.takeUsers,
  oauth_client: access.takeClients,
  subscription: access.takeSubscriptions,
  review: takeReviews,
  response: takeResponses,
  flag: takeFlags,
  note: takeNotes,
  history: takeHistory,
};

type LineFault = Fault & Omit<Place, "kind">;

/** Rolls the transaction of a chunk back. */
class RolledBack extends Error {
  readonly faults: readonly LineFault[];

  constructor(faults: readonly LineFault[]) {
    super("The chunk has faulty lines.");
    this.faults = faults;
  }
}

class Run {
  readonly #deps: ImportDeps;
  readonly #options: ImportOptions;
  readonly #report: Report;
  readonly #total: number;
  readonly #findProfanity = createProfanityFinder();
  readonly #startedAt: Date;
  readonly #startedMs: number;
  #counts: ImportCounts;
  #lines: number;
  #bytes: number;
  #linesOfRun = 0;

  constructor(
    deps: ImportDeps,
    options: ImportOptions,
    report: Report,
    { total, before }: { total: number; before: queries.Progress | undefined },
  ) {
    this.#deps = deps;
    this.#options = options;
    this.#report = report;
    this.#total = total;
    this.#counts = before?.counts ?? {};
    this.#lines = before?.lines ?? 0;
    this.#bytes = before?.bytes ?? 0;
    this.#startedAt = before?.startedAt ?? deps.clock.now();
    this.#startedMs = deps.clock.monotonicMs();
  }

  /** Imports all chunks, each in a transaction. */
  async all(lines: FileLines): Promise<ImportResult> {
    const { db, clock } = this.#deps;
    for await (const chunk of lines.chunks(this.#bytes)) {
      const { counts, faults } = await db
        .transaction(async (tx) => {
          const deps = this.#taking(tx);
          const taken = await this.#take(deps, chunk.lines);
          if (taken.faults.length > 0 && !this.#options.skipsFaulty)
            throw new RolledBack(taken.faults);
          await queries.saveProgress(tx, {
            file: this.#options.file,
            bytes: chunk.end,
            lines: this.#lines + chunk.lines.length,
            digest: chunk.digest,
            counts: taken.counts,
            startedAt: this.#startedAt,
            finishedAt: chunk.isLast ? clock.now() : null,
          });
          if (chunk.isLast) await this.#audit(tx, taken.counts);
          await announce(deps);
          return taken;
        })
        .catch((error: unknown) => {
          if (error instanceof RolledBack) return { counts: undefined, faults: error.faults };
          throw error;
        });
      for (const one of faults) this.#report.onFault(one);
      if (counts === undefined) return { isWhole: false, counts: this.#counts };
      this.#counts = counts;
      this.#advance(chunk.lines.length);
    }
    return { isWhole: true, counts: this.#counts };
  }

  /** Checks all lines in one transaction, because lines refer to earlier ones, and rolls it back. */
  async dry(lines: FileLines): Promise<ImportResult> {
    let isWhole = true;
    await this.#deps.db
      .transaction(async (tx) => {
        for await (const chunk of lines.chunks(0)) {
          const { counts, faults } = await this.#take(this.#taking(tx), chunk.lines);
          for (const one of faults) this.#report.onFault(one);
          if (faults.length > 0) isWhole = false;
          this.#counts = counts;
          this.#advance(chunk.lines.length);
        }
        throw new RolledBack([]);
      })
      .catch((error: unknown) => {
        if (!(error instanceof RolledBack)) throw error;
      });
    return { isWhole, counts: this.#counts };
  }

  #taking(tx: Tx): TakingReviews {
    const { box, config, clock } = this.#deps;
    const announced = this.#options.announces ? [] : undefined;
    return { tx, box, config, now: clock.now(), findProfanity: this.#findProfanity, announced };
  }

  #advance(lines: number): void {
    this.#lines += lines;
    this.#linesOfRun += lines;
    this.#report.onProgress({
      lines: this.#lines,
      total: this.#total,
      linesOfRun: this.#linesOfRun,
      elapsedMs: this.#deps.clock.monotonicMs() - this.#startedMs,
    });
  }

  /** Takes the lines of a chunk, kind by kind. Returns the new counts, and the faults in the order of the lines. */
  async #take(
    deps: TakingReviews,
    chunk: Chunk["lines"],
  ): Promise<{ counts: ImportCounts; faults: readonly LineFault[] }> {
    const counts = structuredClone(this.#counts);
    const faults: LineFault[] = [];
    const refuse = ({ kind, line, record }: Place, refusals: readonly Fault[]) => {
      countOf(counts, kind).faulty++;
      for (const one of refusals) faults.push({ ...one, line, record });
    };
    const read: Read[] = [];
    for (const [index, text] of chunk.entries()) {
      if (text === "") continue;
      const line = readLine(text, this.#lines + index + 1);
      if ("faults" in line) refuse(line, line.faults);
      else read.push(line);
    }
    for (const kind of KINDS) {
      const ofKind = read.filter((one): one is Read => one.kind === kind);
      if (ofKind.length === 0) continue;
      const outcomes = await takeKind(deps, kind, ofKind);
      for (const [index, outcome] of outcomes.entries()) {
        const line = ofKind[index];
        if (typeof outcome === "string") countOf(counts, kind)[outcome]++;
        else if (line !== undefined) refuse(line, [outcome]);
      }
    }
    return { counts, faults: faults.toSorted((a, b) => a.line - b.line) };
  }

  async #audit(tx: Tx, counts: ImportCounts): Promise<void> {
    const { file } = this.#options;
    await recordAudit(tx, {
      at: this.#deps.clock.now(),
      action: "DATA_IMPORTED",
      actor: null,
      requestContext: null,
      details: { file: file.slice(file.lastIndexOf("/") + 1), counts },
    });
  }
}

const takeKind = <K extends Kind>(deps: TakingReviews, kind: K, lines: readonly Read<K>[]) =>
  HANDLERS[kind](
    deps,
    lines.map(({ value }) => value),
  );

function countOf(counts: ImportCounts, kind: string) {
  return (counts[kind] ??= { created: 0, present: 0, faulty: 0 });
}

type Refused = Place & { readonly faults: readonly Fault[] };

function readLine(text: FileLine, line: number): Read | Refused {
  const value = parsed(text);
  const unread = { line, kind: "unknown", record: undefined };
  if (typeof value === "string") return { ...unread, faults: [fault("line", value)] };
  const { kind: given, ...fields } = value;
  const kind = KINDS.find((one) => one === given);
  if (kind === undefined)
    return { ...unread, faults: [fault("kind", `must be one of ${KINDS.join(", ")}`)] };
  const place = { line, kind, record: recordOf(kind, fields) };
  const examined = examine(LINES[kind], fields);
  if ("value" in examined) return { ...place, value: examined.value };
  const faults = Object.entries(examined.fieldErrors).map(([field, [first = ""]]) =>
    fault(field, first),
  );
  return { ...place, faults };
}

/** Names the record of a line by its kind and its first key. */
function recordOf(kind: Kind, fields: Readonly<Record<string, unknown>>): string {
  const key = fields["id"] ?? fields["external_id"] ?? fields["client_id"] ?? fields["event_id"];
  return typeof key === "number" || typeof key === "string" ? `${kind} ${key}` : kind;
}
