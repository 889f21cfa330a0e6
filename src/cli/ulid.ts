import { usage } from "./failure.ts";

/** The id as it is, if it is one. */
export function ulid(text: string): string {
  if (/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text)) return text;
  throw usage(`${text} is no id: it has 26 characters, such as 01JWNB9PR0ZV8X2D3F4G5H6J00.`);
}
