import { TextInput } from "@mantine/core";

import { instantOf, localTimeOf } from "./instants.ts";

interface TimeFieldProps {
  readonly label: string;
  /** An instant. */
  readonly value: string | undefined;
  readonly onChange: (instant: string | undefined) => void;
  readonly className?: string;
}

/** Shows the clock of whoever looks; takes and gives instants. */
export function TimeField({ label, value, onChange, className = "" }: TimeFieldProps) {
  return (
    <TextInput
      label={label}
      type="datetime-local"
      className={className}
      value={localTimeOf(value)}
      onChange={(event) => onChange(instantOf(event.currentTarget.value))}
    />
  );
}
