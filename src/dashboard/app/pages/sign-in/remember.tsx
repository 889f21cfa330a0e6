import { Checkbox } from "@mantine/core";

interface RememberProps {
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
}

export function Remember({ value, onChange }: RememberProps) {
  return (
    <Checkbox
      label="Keep me signed in in this tab"
      description="After a reload, too, for up to a day. Other tabs sign in on their own."
      checked={value}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
