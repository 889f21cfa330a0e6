const MAX_ID = 2_147_483_647;

/** A number of the address or of a field, if it is one that a row can have. */
export function idOf(text: string | undefined): number | undefined {
  const isId = text !== undefined && /^[1-9]\d{0,9}$/.test(text) && Number(text) <= MAX_ID;
  return isId ? Number(text) : undefined;
}
