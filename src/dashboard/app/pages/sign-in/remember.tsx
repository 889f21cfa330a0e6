import { Checkbox } from "@mantine/core";

interface RememberProps {
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
}

export function Remember({ value, onChange }: RememberProps) {
  return (
    <Checkbox
      label="Keep me signed in"
      description="After a reload and in new tabs, for up to a day. Not on a computer that others use."
      checked={value}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
