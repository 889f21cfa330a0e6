/** The reason why a line cannot be imported: the faulty field, and a sentence about it. */
export interface Fault {
  readonly field: string;
  readonly text: string;
}

/**
 * The result of a line: its record was created (`created`) or existed already (`present`), or the line is refused for a
 * fault.
 */
export type Outcome = "created" | "present" | Fault;

export const fault = (field: string, text: string): Fault => ({ field, text });

/** Returns the fault of a field that refers to a record which does not exist. */
export const unknown = (field: string, noun: string): Fault =>
  fault(field, `names no ${noun} in an earlier line or in the database`);

/** The values that identify a record. */
export interface Identity {
  /** The noun for the record in messages, if it differs from the noun of the directory. */
  readonly noun?: string;
  /** The display name of the record. */
  readonly name?: string;
  readonly id?: number | string | undefined;
  readonly externalId?: string | null | undefined;
  /** A field with a unique value, such as an email. */
  readonly unique?: { readonly field: string; readonly value: string } | undefined;
  /**
   * A value of the record that never changes, such as the id of its company. A line with an id but no external id
   * refers to the record with that id only if the line and the record have the same origin.
   */
  readonly origin: string;
}

/**
 * The records of one kind to which lines may refer: those of the database, and those that earlier lines have created.
 *
 * A line refers to the record that has the id of the line. If no record has it, the line refers to the record that has
 * its external id, or else to the one that has its unique value. If the line has another id or external id than that
 * record, it is refused, because a line must never change the record of another company.
 */
export class Directory {
  readonly #byId = new Map<number | string, Identity>();
  readonly #byExternalId = new Map<string, Identity>();
  readonly #byUnique = new Map<string, Identity>();
  readonly #noun: string;

  /** Creates a directory of `records`; `noun` names their kind in messages. */
  constructor(noun: string, records: Iterable<Identity>) {
    this.#noun = noun;
    for (const record of records) this.#add(record);
  }

  /** Finds the record to which a line refers. If there is none, calls `create`, which may refuse the line. */
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
      // The message suggests a reference by name for plans, because they have no external id.
      const key = externalId === undefined ? unique?.field : "external_id";
      const refer = key === "external_id" || key === "name" ? `, and refer to it by ${key}` : "";
      const instead = `${shared}omit id for a new record${refer}`;
      return fault("id", `is that of ${this.#describe(byId)}: ${instead}`);
    }
    const byExternalId = externalId == null ? undefined : this.#byExternalId.get(externalId);
    if (byExternalId !== undefined) {
      if (id === undefined || byExternalId.id === undefined) return "present";
      const other = this.#describe(byExternalId);
      return fault("external_id", `is that of ${other}: send its id, or omit id`);
    }
    const byUnique = unique && this.#byUnique.get(unique.value);
    if (byUnique !== undefined) {
      if (id === undefined && externalId == null) return "present";
      return fault(
        unique?.field ?? "id",
        `is that of ${this.#describe(byUnique)}: omit id and external_id to refer to it; the value must be unique`,
      );
    }
    if (id === undefined && externalId == null && unique === undefined)
      return fault("external_id", "is required for a record without an id");
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

/**
 * Returns a map of records with two keys for each record: its id, which is a number, and its external id, which is a
 * text.
 */
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
