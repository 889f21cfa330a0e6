import { idOf } from "../../ui/ids.ts";

export const FILTERS = ["action", "actor", "company", "since", "until"] as const;
type Get = (name: (typeof FILTERS)[number]) => string | undefined;

/** The address's words as the API's query; what the API would not take is left out. */
export function auditQuery(get: Get) {
  const action = get("action");
  const actorId = idOf(get("actor"));
  const companyId = idOf(get("company"));
  const since = instantOf(get("since"));
  const until = instantOf(get("until"));
  return {
    ...(action !== undefined && /^[A-Z_]{1,64}$/.test(action) && { action }),
    ...(actorId !== undefined && { actor_id: actorId }),
    ...(companyId !== undefined && { company_id: companyId }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

/** The address holds UTC; `2026-06-01T10:30` of a field is the reader's own time. */
export function instantOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const instant = new Date(text);
  return Number.isNaN(instant.getTime()) ? undefined : instant.toISOString();
}

const two = (value: number) => String(value).padStart(2, "0");

/** An instant as `<input type="datetime-local">` wants it. */
export function localOf(text: string | undefined): string {
  const instant = instantOf(text);
  if (instant === undefined) return "";
  const at = new Date(instant);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`;
}
