import { TextInput } from "@mantine/core";

import { instantOf, localTimeOf } from "./attempt-rows.ts";

/** A time of day on the clock of whoever looks; an instant outside. */
export function TimeField({
  label,
  value,
  onChange,
  error,
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
  readonly error?: string | undefined;
}) {
  return (
    <TextInput
      label={label}
      type="datetime-local"
      className="filter time"
      value={localTimeOf(value)}
      error={error}
      onChange={(event) => onChange(instantOf(event.currentTarget.value))}
    />
  );
}
