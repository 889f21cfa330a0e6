import { Button, Group, PasswordInput, Progress, Stack, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { fieldError, problemOf } from "./explain.ts";
import { ErrorNotice } from "./states.tsx";
import { PASSWORD_LENGTH, strengthOf } from "./strength.ts";
import { useSubmit } from "./use-submit.ts";

const COLORS = ["red", "red", "yellow", "teal", "teal"] as const;

/** The last step of a new password. `email` is there for the password manager. */
export function NewPassword({
  email,
  action,
  onPassword,
  children,
}: {
  readonly email: string;
  readonly action: string;
  readonly onPassword: (password: string) => Promise<void>;
  readonly children?: ReactNode;
}) {
  const [password, setPassword] = useState("");
  const { error, isBusy, onSubmit } = useSubmit(() => onPassword(password));
  const { level, word } = strengthOf(password);
  const wrong = fieldError(error, "password");
  return (
    <form onSubmit={onSubmit}>
      <Stack>
        <input type="hidden" name="username" autoComplete="username" value={email} />
        <div>
          <PasswordInput
            label="New password"
            description={`${PASSWORD_LENGTH.min} to ${PASSWORD_LENGTH.max} characters. A sentence is easy to keep in mind and hard to guess.`}
            autoComplete="new-password"
            required
            withAsterisk={false}
            data-autofocus
            // The step before it ended with the keyboard or the pointer somewhere that is gone now.
            // oxlint-disable-next-line jsx-a11y/no-autofocus
            autoFocus
            minLength={PASSWORD_LENGTH.min}
            maxLength={PASSWORD_LENGTH.max}
            visibilityToggleFocusable
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
            error={wrong === undefined ? undefined : `The password ${wrong}.`}
          />
          <Group gap="xs" mt="xs" wrap="nowrap">
            <Progress.Root size="sm" className="grows" aria-hidden>
              <Progress.Section value={level * 25} color={COLORS[level] ?? "red"} />
            </Progress.Root>
            <Text size="xs" c="dimmed" w={96} ta="right" component="output" aria-live="polite">
              {password === "" ? "" : word}
            </Text>
          </Group>
        </div>
        {error !== undefined && wrong === undefined && <Refused error={error} />}
        {children}
        <Button type="submit" loading={isBusy}>
          {action}
        </Button>
      </Stack>
    </form>
  );
}

/** The code was good for a quarter of an hour. */
function Refused({ error }: { readonly error: unknown }) {
  if (problemOf(error)?.status !== 401) return <ErrorNotice error={error} />;
  return (
    <Text c="red" size="sm" role="alert">
      This took too long: the code has expired. Ask for a new one.
    </Text>
  );
}
