import { addMs, isoInstant } from "../lib/clock.ts";
import type { Surroundings } from "./surroundings.ts";

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

export const AGO = "2026-06-01T12:00:00Z, or 90m, 2h, 7d ago";

/** An instant as it is, or so long ago; the API says what is wrong with any other text. */
export function instant({ clock }: Surroundings, text: string | undefined): string | undefined {
  const [, count, unit = ""] = /^(\d{1,4})([mhd])$/.exec(text ?? "") ?? [];
  if (count === undefined) return text;
  return isoInstant(addMs(clock.now(), -Number(count) * (UNIT_MS[unit] ?? 0)));
}
