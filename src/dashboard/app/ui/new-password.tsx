import { ErrorText } from "./layout.tsx";
import { Group, PasswordInput, Progress, Text } from "@mantine/core";
import type { ReactNode } from "react";

import { apiErrorOf } from "../api/client.ts";
import { Form, SubmitButton, useForm } from "./form.tsx";
import { ErrorNotice } from "./states.tsx";
import { PASSWORD_LENGTH, strengthOf } from "./password-strength.ts";

const LEVEL_COLORS = ["red", "red", "yellow", "teal", "teal"] as const;

interface NewPasswordProps {
  /** Email under which a password manager stores the new password. */
  readonly email: string;
  readonly action: string;
  readonly onPassword: (password: string) => Promise<void>;
  readonly children?: ReactNode;
}

/** Form for a new password. It is the last step of every flow that sets a password. */
export function NewPassword({ email, action, onPassword, children }: NewPasswordProps) {
  const form = useForm({
    initial: { password: "" },
    send: ({ password }) => onPassword(password),
  });
  const error = form.reasonOf("password");
  return (
    <Form
      form={form}
      isCheckedByBrowser
      renderError={(whole) => <NewPasswordError error={whole} />}
      buttons={<SubmitButton form={form}>{action}</SubmitButton>}
    >
      <input type="hidden" name="username" autoComplete="username" value={email} />
      <div>
        <PasswordInput
          label="New password"
          description={`${PASSWORD_LENGTH.min} to ${PASSWORD_LENGTH.max} characters. A sentence is easy to remember and hard to guess.`}
          autoComplete="new-password"
          required
          withAsterisk={false}
          data-autofocus
          // Autofocus is needed because the control that had the focus was removed with the previous step.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          minLength={PASSWORD_LENGTH.min}
          maxLength={PASSWORD_LENGTH.max}
          visibilityToggleFocusable
          {...form.text("password")}
          error={error === undefined ? undefined : `The password ${error}.`}
        />
        {error === undefined && <StrengthMeter password={form.draft.password} />}
      </div>
      {children}
    </Form>
  );
}

function StrengthMeter({ password }: { readonly password: string }) {
  const { level, word } = strengthOf(password);
  return (
    <Group gap="xs" mt="xs" wrap="nowrap">
      <Progress.Root size="sm" className="grows" aria-hidden>
        <Progress.Section value={level * 25} color={LEVEL_COLORS[level] ?? "red"} />
      </Progress.Root>
      <Text size="xs" c="dimmed" w={96} ta="right" component="output" aria-live="polite">
        {password === "" ? "" : word}
      </Text>
    </Group>
  );
}

/**
 * Explains why a new password was rejected. A 401 means that the token for the password change has expired,
 * which happens 15 minutes after the code was verified.
 */
function NewPasswordError({ error }: { readonly error: Error }) {
  if (apiErrorOf(error)?.status !== 401) return <ErrorNotice error={error} />;
  return <ErrorText>The code has expired. Request a new one.</ErrorText>;
}
