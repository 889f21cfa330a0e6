const MAX_ID = 2_147_483_647;

/** Reads an id from the address or a field; undefined for what no row can have. */
export function idOf(text: string | undefined): number | undefined {
  const isId = text !== undefined && /^[1-9]\d{0,9}$/.test(text) && Number(text) <= MAX_ID;
  return isId ? Number(text) : undefined;
}
