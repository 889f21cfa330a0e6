import { Radio, Stack } from "@mantine/core";
import type { ReactNode } from "react";

interface Option<T extends string> {
  readonly value: T;
  readonly label: string;
  readonly description?: ReactNode;
  readonly isDisabled?: boolean;
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly Option<T>[];
  readonly onChange: (value: T) => void;
  readonly error?: string | undefined;
}

/** Radio buttons for a choice between a few options, each with a possible explanation. */
export function Choice<T extends string>(props: ChoiceProps<T>) {
  const { label, value, options, onChange, error } = props;
  const choose = (text: string) => {
    const option = options.find((one) => one.value === text);
    if (option) onChange(option.value);
  };
  return (
    <Radio.Group label={label} value={value} onChange={choose} error={error}>
      <Stack gap="xs" mt={6}>
        {options.map((option) => (
          <Radio
            key={option.value}
            className="choice"
            value={option.value}
            label={option.label}
            description={option.description}
            disabled={option.isDisabled ?? false}
          />
        ))}
      </Stack>
    </Radio.Group>
  );
}
