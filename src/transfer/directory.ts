/** Why a line cannot be imported: a field and a sentence about it. */
export interface Fault {
  readonly field: string;
  readonly text: string;
}

/** The result of a line: its record was created, was there already, or is refused. */
export type Outcome = "created" | "present" | Fault;

export const fault = (field: string, text: string): Fault => ({ field, text });

/** The fault of a field that refers to a record which does not exist. */
export const unknown = (field: string, noun: string): Fault =>
  fault(field, `names no ${noun} of an earlier line or of the database`);

/** The values by which a record is recognised. */
export interface Identity {
  /** The noun of the record, if it differs from that of the directory. */
  readonly noun?: string;
  /** What people call the record. */
  readonly name?: string;
  readonly id?: number | string | undefined;
  readonly externalId?: string | null | undefined;
  /** A value that no two records share, such as an email, with the field that has it. */
  readonly unique?: { readonly field: string; readonly value: string } | undefined;
  /** A value that a record keeps, such as its parent, by which a record without an external id is recognised. */
  readonly origin: string;
}

/**
 * The records of one kind that lines may mean: those of the database, and those that earlier lines have created.
 *
 * A line means the record with its id, else that with its external id, else that with its unique value. It is refused if
 * these are different records: a line must never be attached to the record of somebody else.
 */
export class Directory {
  readonly #byId = new Map<number | string, Identity>();
  readonly #byExternalId = new Map<string, Identity>();
  readonly #byUnique = new Map<string, Identity>();
  readonly #noun: string;

  /** `noun` is what a message calls a record. */
  constructor(noun: string, records: Iterable<Identity>) {
    this.#noun = noun;
    for (const record of records) this.#add(record);
  }

  /** Finds the record of a line. Calls `create` for a new record, which may refuse it. */
  settle(line: Identity, create: () => Fault | undefined): Outcome {
    const found = this.#find(line);
    if (found !== undefined) return found;
    const refusal = create();
    if (refusal !== undefined) return refusal;
    this.#add(line);
    return "created";
  }

  #find({ id, externalId, unique, origin }: Identity): Outcome | undefined {
    const byId = id === undefined ? undefined : this.#byId.get(id);
    if (byId !== undefined) {
      const isSame = externalId == null ? byId.origin === origin : byId.externalId === externalId;
      if (isSame) return "present";
      const { noun = this.#noun } = byId;
      const shared = noun === this.#noun ? "" : `${noun}s and ${this.#noun}s share their ids; `;
      // Plans have no external id, and lines refer to them by id or name.
      const key = externalId === undefined ? unique?.field : "external_id";
      const refer = key === "external_id" || key === "name" ? `, and refer to it by ${key}` : "";
      const instead = `${shared}leave id out for another one${refer}`;
      return fault("id", `is that of ${this.#describe(byId)}: ${instead}`);
    }
    const byExternalId = externalId == null ? undefined : this.#byExternalId.get(externalId);
    if (byExternalId !== undefined) {
      if (id === undefined || byExternalId.id === undefined) return "present";
      const other = this.#describe(byExternalId);
      return fault("external_id", `is that of ${other}: give its id, or leave id out`);
    }
    const byUnique = unique && this.#byUnique.get(unique.value);
    if (byUnique !== undefined) {
      if (id === undefined && externalId == null) return "present";
      return fault(
        unique?.field ?? "id",
        `is that of ${this.#describe(byUnique)}: leave id and external_id out to mean it; a second one cannot have it`,
      );
    }
    if (id === undefined && externalId == null && unique === undefined)
      return fault("external_id", "is required of a record without an id");
    return undefined;
  }

  #describe({ noun = this.#noun, id, externalId, name }: Identity): string {
    const named = name === undefined ? "" : ` "${name}"`;
    const at = id === undefined ? " of an earlier line" : ` ${id}`;
    const external = externalId == null ? "" : ` (external_id ${externalId})`;
    return `the ${noun}${at}${named}${external}`;
  }

  #add(record: Identity): void {
    const { id, externalId, unique } = record;
    if (id !== undefined) this.#byId.set(id, record);
    if (externalId != null) this.#byExternalId.set(externalId, record);
    if (unique !== undefined) this.#byUnique.set(unique.value, record);
  }
}

/** Makes a map of records by their ids and by their external ids, which are never alike: one is a number. */
export function byKey<R extends { readonly id: number; readonly externalId: string | null }>(
  records: Iterable<R>,
): ReadonlyMap<number | string, R> {
  const found = new Map<number | string, R>();
  for (const record of records) {
    found.set(record.id, record);
    if (record.externalId !== null) found.set(record.externalId, record);
  }
  return found;
}
