import { Checkbox, Stack } from "@mantine/core";

import { isScope, type Scope, SCOPE_WORDS, SCOPES } from "./client-model.ts";

interface ScopesFieldProps {
  readonly value: readonly Scope[];
  readonly onChange: (value: Scope[]) => void;
  readonly error: string | undefined;
}

/** Selects OAuth scopes. Selecting `*` clears the other scopes, because `*` includes them. */
export function ScopesField({ value, onChange, error }: ScopesFieldProps) {
  const isAll = value.includes("*");
  return (
    <Checkbox.Group
      label="Scopes"
      description="Grant only what is needed."
      value={[...value]}
      onChange={(next) => {
        const chosen = next.filter(isScope);
        onChange(chosen.includes("*") ? ["*"] : chosen);
      }}
      error={error ?? (value.length === 0 && "Choose at least one scope.")}
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
