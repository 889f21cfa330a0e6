const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** Parts of an action as a service inserted it, which may be anything. */
export function partsOf(action: unknown): { readonly event: string; readonly id: string } {
  const fields: Readonly<Record<string, unknown>> =
    typeof action === "object" && action !== null ? { ...action } : {};
  return { event: textOf(fields["event"]) || "Unreadable action", id: textOf(fields["id"]) };
}

/** Names an action the same way everywhere: by its own id, or if it has none, by its row in the inbox. */
export function nameOf(action: unknown, position: number): string {
  const { id } = partsOf(action);
  return id === "" ? `row ${position}` : `action ${id}`;
}

/** Number of allowed values that a reason shows without a click. */
const SHOWN_VALUES = 4;

interface Reason {
  readonly text: string;
  /** The allowed values of a field, if there are too many for the text. */
  readonly values: readonly string[];
}

/** Shortens the reason for which an action was rejected: a long list of allowed values becomes their number. */
export function shortReason(text: string): Reason {
  const values = /^must be one of (.+)$/.exec(text)?.[1]?.split(", ") ?? [];
  if (values.length <= SHOWN_VALUES) return { text, values: [] };
  return { text: `must be one of ${values.length} values`, values };
}
