import { ApiError } from "../../../api/client.ts";

export type { ApiError };

/** Answers the error as the API said it; undefined where the API could not be asked. */
export function apiErrorOf(error: unknown): ApiError | undefined {
  return error instanceof ApiError ? error : undefined;
}

/** Answers what a 422 says of one field, and of the entries of a list, which are named by their places: `domains.2`. */
export function fieldError(error: unknown, field: string): string | undefined {
  const errors = apiErrorOf(error)?.errors ?? {};
  const ofEntries = Object.entries(errors).flatMap(([name, texts]) => {
    const place = name.startsWith(`${field}.`) ? Number(name.slice(field.length + 1)) : Number.NaN;
    return Number.isNaN(place) ? [] : [`number ${place + 1} ${texts.join(", ")}`];
  });
  const texts = [...(field in errors ? [errors[field]?.join(", ") ?? ""] : []), ...ofEntries];
  return texts.length === 0 ? undefined : texts.join("; ");
}
