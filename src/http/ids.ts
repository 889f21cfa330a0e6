import { Problem } from "../lib/problem.ts";

export const isUlid = (text: string): boolean => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text);
export const isRowId = (text: string): boolean => /^[1-9]\d{0,15}$/.test(text);

const MAX_ID = 2_147_483_647;

/**
 * Loads the database row whose id is in the path. Throws `not_found` if the row is missing or the id is malformed
 * (contract 2.6).
 */
export async function findRow<Row>(
  id: string | undefined,
  read: (id: number) => Promise<Row | undefined>,
): Promise<Row> {
  const wellFormed = id !== undefined && isRowId(id) && Number(id) <= MAX_ID;
  const row = wellFormed ? await read(Number(id)) : undefined;
  if (row === undefined) throw new Problem("not_found");
  return row;
}
