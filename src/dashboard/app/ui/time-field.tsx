import { TextInput } from "@mantine/core";

import { instantOf, localTimeOf } from "./instants.ts";

interface TimeFieldProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (instant: string | undefined) => void;
  readonly className?: string;
}

/** The field shows the clock of whoever looks; `value` and `onChange` have instants in UTC. */
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
