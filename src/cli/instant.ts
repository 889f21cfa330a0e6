import { addMs, isoInstant, parseInstant } from "../lib/clock.ts";
import type { ParsedArgs } from "./command.ts";
import { type CommandContext, usage } from "./context.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

export const AGO = "2026-06-01T12:00:00Z, or 30s, 90m, 2h, 7d ago";

/**
 * Converts the value of a flag to an instant: an ISO instant stays as it is, an age such as `2h` counts back from the
 * current time. Throws for other text.
 */
export function instant(
  { clock }: CommandContext,
  given: ParsedArgs,
  flag: "since" | "until",
): string | undefined {
  const text = given.text(flag);
  const [, count, unit = ""] = /^(\d{1,4})([smhd])$/.exec(text ?? "") ?? [];
  if (count !== undefined)
    return isoInstant(addMs(clock.now(), -Number(count) * (UNIT_MS[unit] ?? 0)));
  if (text !== undefined && parseInstant(text) === undefined)
    throw usage(`--${flag} ${text} is not an instant: ${AGO}.`);
  return text;
}
