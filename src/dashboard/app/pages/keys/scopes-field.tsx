import { Checkbox, Stack } from "@mantine/core";

import { isScope, SCOPES, SCOPE_WORDS, type Scope } from "./scopes.ts";

interface ScopesFieldProps {
  readonly value: readonly Scope[];
  readonly onChange: (value: Scope[]) => void;
  readonly error: string | undefined;
}

/** `*` stands for all others, so that they cannot be chosen beside it. */
export function ScopesField({ value, onChange, error }: ScopesFieldProps) {
  const isAll = value.includes("*");
  return (
    <Checkbox.Group
      label="Scopes"
      description="Give as few as the work needs."
      value={[...value]}
      onChange={(next) => {
        const chosen = next.filter(isScope);
        onChange(chosen.includes("*") ? ["*"] : chosen);
      }}
      error={error}
    >
      <Stack gap={8} mt={8}>
        {SCOPES.map((scope) => (
          <Checkbox
            key={scope}
            value={scope}
            label={SCOPE_WORDS[scope]}
            description={scope === "*" ? undefined : <code>{scope}</code>}
            disabled={isAll && scope !== "*"}
          />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}
