/** Why a line cannot be imported: a field and a sentence about it. */
export interface Fault {
  readonly field: string;
  readonly text: string;
}

/** The result of a line: its record was created, was there already, or is refused. */
export type Outcome = "created" | "present" | Fault;

export const fault = (field: string, text: string): Fault => ({ field, text });

/** The values by which a record is recognised. */
export interface Identity {
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

  constructor(records: Iterable<Identity>) {
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
      return isSame ? "present" : fault("id", "is the id of another record");
    }
    const byExternalId = externalId == null ? undefined : this.#byExternalId.get(externalId);
    if (byExternalId !== undefined) {
      if (id === undefined || byExternalId.id === undefined) return "present";
      return fault("external_id", `is that of the record ${byExternalId.id}`);
    }
    const byUnique = unique && this.#byUnique.get(unique.value);
    if (byUnique !== undefined) {
      if (id === undefined && externalId == null) return "present";
      return fault(
        unique?.field ?? "id",
        `is that of the record ${byUnique.id ?? "of an earlier line"}`,
      );
    }
    if (id === undefined && externalId == null && unique === undefined)
      return fault("external_id", "is required of a record without an id");
    return undefined;
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
