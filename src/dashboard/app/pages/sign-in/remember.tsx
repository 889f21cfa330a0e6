import { Checkbox } from "@mantine/core";

export function Remember({
  value,
  onChange,
}: {
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
}) {
  return (
    <Checkbox
      label="Keep me signed in in this tab"
      description="After a reload, too, for up to a day. Other tabs sign in on their own."
      checked={value}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
