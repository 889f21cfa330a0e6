import { Checkbox, Stack } from "@mantine/core";

/** Scope (contract 5.1) → its description for users. */
const SCOPE_WORDS = {
  "*": "Everything that the user may",
  "reviews:read": "See reviews",
  "reviews:write": "Answer, flag and assign reviews",
  "webhooks:read": "See webhooks and deliveries",
  "webhooks:write": "Make, change and delete webhooks",
  "clients:write": "Manage OAuth clients",
  impersonate: "Act for the owners of accounts",
} as const;

export type Scope = keyof typeof SCOPE_WORDS;
// Object.keys has the type string[].
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const SCOPES = Object.keys(SCOPE_WORDS) as Scope[];

export function scopeWords(scopes: readonly string[]): string {
  return scopes.includes("*") ? "Everything" : scopes.join(", ");
}

export const isScope = (value: string): value is Scope => value in SCOPE_WORDS;

interface ScopesFieldProps {
  readonly value: readonly Scope[];
  readonly onChange: (value: Scope[]) => void;
  readonly error: string | undefined;
}

/** Selects scopes. `*` includes all others, so it excludes choosing them separately. */
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
