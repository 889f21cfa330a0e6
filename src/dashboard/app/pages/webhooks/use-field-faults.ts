import { useEffect, useRef } from "react";

import { fieldError } from "../../ui/explain.ts";

const FIELDS = [
  "webhook_url",
  "label",
  "batch_interval_hours",
  "events",
  "payload_mode",
  "ordering",
] as const;

/** Whether an error is told at a field of the form: saying it once is enough. */
export const isAtField = (error: unknown): boolean =>
  FIELDS.some((field) => fieldError(error, field) !== undefined);

/** Leads to the first field that was refused, once it says why. */
export function useFieldFaults(error: unknown) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (isAtField(error)) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [error]);
  return form;
}
