const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** Parts of an action as a service inserted it, which may be anything. */
export function partsOf(action: unknown): { readonly event: string; readonly id: string } {
  const fields: Readonly<Record<string, unknown>> =
    typeof action === "object" && action !== null ? { ...action } : {};
  return { event: textOf(fields["event"]) || "Unreadable action", id: textOf(fields["id"]) };
}
