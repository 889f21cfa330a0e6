import type { Db, Tx } from "../../db/client.ts";
import { FIRST_OWN_ID } from "../../db/own-ids.ts";
import type { ImportCounts } from "../../db/schema/companies.ts";
import { recordAudit } from "../audit/queries.ts";
import { completeEmails } from "../auth/passwords/email-queries.ts";
import { examine } from "../http/fields.ts";
import type { Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { SecretBox } from "../lib/secrets.ts";
import { createProfanityFinder } from "../intake/profanity.ts";
import { fault, type Fault, type Outcome } from "./directory.ts";
import { type Kind, KINDS, LINES, type LineOf } from "./format.ts";
import { type Chunk, type FileLine, FileLines, parseLine } from "./lines.ts";
import * as queries from "./queries/import.ts";
import * as access from "./import-access.ts";
import * as masterData from "./import-master-data.ts";
import {
  announce,
  importFlags,
  importHistory,
  importNotes,
  importResponses,
  importReviews,
  type ImportReviewsDeps,
} from "./import-reviews.ts";

/** The most lines of one chunk, which is imported in one transaction. */
const CHUNK_LINES = 1_000;

export interface ImportDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly config: Pick<Config, "batchHourMs" | "egress">;
}

export interface ImportOptions {
  /** The path of the file. The progress of the import is stored under it. */
  readonly file: string;
  /** Whether the import only checks all lines, in a transaction that is rolled back. */
  readonly isDryRun: boolean;
  /** Whether the import continues after the last committed line of an earlier run of the same file. */
  readonly resumes: boolean;
  /** Whether lines of the history are recorded as actions that happen now, which cause webhooks, batches and mails. */
  readonly announces: boolean;
  /** Whether the import skips faulty lines and continues. If not, it stops at the first chunk with a faulty line. */
  readonly skipsFaulty: boolean;
}

/**
 * The progress of an import. `lines` counts the processed lines, also those of an earlier run that this run continues;
 * `total` counts all lines of the file.
 */
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
 * Imports a file of lines (contract 10.9). Each chunk is imported in one transaction, which also stores the progress.
 * So after a run is killed, another run can continue. Existing records do not change, so a second run of the same file
 * changes nothing.
 *
 * With `resumes`, throws an error if the part of the file that an earlier run has imported has changed.
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
  // The sequences of the tables are moved past the ids of the file, so that an id that PostgreSQL assigns during the
  // import is not that of a later line. A dry run does not undo this.
  for (const [kind, id] of survey.maxIds) await queries.moveSequence(db, kind, id);
  return isDryRun ? run.dry(lines) : run.all(lines);
}

/** Error: the imported part of the file has changed, so the import cannot continue. */
class ResumeError extends Error {}

async function requireSame(lines: FileLines, before: queries.Progress): Promise<void> {
  if ((await lines.digestOf(before.bytes)) !== before.digest)
    throw new ResumeError(
      `The first ${before.lines} lines differ from those that were imported; run the import without --resume.`,
    );
}

/**
 * Counts the lines, and finds the highest id of each kind. Ids from `FIRST_OWN_ID` on are ignored, because no sequence
 * of a table reaches them. Lines that are not JSON are ignored too; the import reports them.
 */
async function surveyOf(lines: FileLines) {
  const maxIds = new Map<string, number>();
  let count = 0;
  for await (const chunk of lines.chunks(0))
    for (const text of chunk.lines) {
      count++;
      const value = parseLine(text);
      if (typeof value === "string") continue;
      const { kind, id } = value;
      if (typeof kind === "string" && typeof id === "number" && id < FIRST_OWN_ID)
        maxIds.set(kind, Math.max(id, maxIds.get(kind) ?? 0));
    }
  return { lines: count, maxIds };
}

/**
 * The number of a line and its record. `record` contains the kind and, if there is one, the key of the record;
 * undefined if the line cannot be read.
 */
interface Position {
  readonly line: number;
  readonly kind: string;
  readonly record: string | undefined;
}

/** A line that its schema accepts. */
interface ReadLine<K extends Kind = Kind> extends Position {
  readonly kind: K;
  readonly value: LineOf<K>;
}

type Handlers = {
  readonly [K in Kind]: (
    deps: ImportReviewsDeps,
    lines: readonly LineOf<K>[],
  ) => Promise<Outcome[]>;
};
const HANDLERS: Handlers = {
  plan: masterData.importPlans,
  partner: masterData.importPartners,
  account: masterData.importAccounts,
  store: masterData.importStores,
  review_site: masterData.importSites,
  connection: masterData.importConnections,
  user: access.importUsers,
  oauth_client: access.importClients,
  subscription: access.importSubscriptions,
  review: importReviews,
  response: importResponses,
  flag: importFlags,
  note: importNotes,
  history: importHistory,
};

type LineFault = Fault & Omit<Position, "kind">;

/** Error that is thrown to roll back the transaction of a chunk or of a dry run. */
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

  /**
   * Imports all lines in one transaction and rolls it back. It is one transaction, because lines refer to records of
   * earlier lines.
   */
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

  #taking(tx: Tx): ImportReviewsDeps {
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

  /**
   * Imports the lines of a chunk, one kind after another. Returns the counts of the whole import so far, and the
   * chunk's faults in the order of the lines.
   */
  async #take(
    deps: ImportReviewsDeps,
    chunk: Chunk["lines"],
  ): Promise<{ counts: ImportCounts; faults: readonly LineFault[] }> {
    const counts = structuredClone(this.#counts);
    const faults: LineFault[] = [];
    const refuse = ({ kind, line, record }: Position, refusals: readonly Fault[]) => {
      countOf(counts, kind).faulty++;
      for (const one of refusals) faults.push({ ...one, line, record });
    };
    const read: ReadLine[] = [];
    for (const [index, text] of chunk.entries()) {
      if (text === "") continue;
      const line = readLine(text, this.#lines + index + 1);
      if ("faults" in line) refuse(line, line.faults);
      else read.push(line);
    }
    for (const kind of KINDS) {
      const ofKind = read.filter((one): one is ReadLine => one.kind === kind);
      if (ofKind.length === 0) continue;
      const outcomes = await importKind(deps, kind, ofKind);
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

const importKind = <K extends Kind>(
  deps: ImportReviewsDeps,
  kind: K,
  lines: readonly ReadLine<K>[],
) =>
  HANDLERS[kind](
    deps,
    lines.map(({ value }) => value),
  );

function countOf(counts: ImportCounts, kind: string) {
  return (counts[kind] ??= { created: 0, present: 0, faulty: 0 });
}

type RefusedLine = Position & { readonly faults: readonly Fault[] };

function readLine(text: FileLine, line: number): ReadLine | RefusedLine {
  const value = parseLine(text);
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

/** Returns the kind of a line's record, followed by the id or the first other key that the line has. */
function recordOf(kind: Kind, fields: Readonly<Record<string, unknown>>): string {
  const key = fields["id"] ?? fields["external_id"] ?? fields["client_id"] ?? fields["event_id"];
  return typeof key === "number" || typeof key === "string" ? `${kind} ${key}` : kind;
}
