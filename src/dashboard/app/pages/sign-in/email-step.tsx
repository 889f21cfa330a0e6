import { TextInput } from "@mantine/core";

import { useCredentials, type SignInMethods } from "../../session/credentials.ts";
import { Form, SubmitButton } from "../../ui/form.tsx";
import { useForm } from "../../ui/use-form.ts";
import { useWait } from "../../ui/use-wait.ts";
import { SignInError } from "./sign-in-error.tsx";

interface EmailStepProps {
  /** The email that was typed before. */
  readonly email: string;
  readonly onDiscovered: (email: string, methods: SignInMethods) => void;
}

/** Asks how the domain of the address signs in; nobody is looked up. */
export function EmailStep({ email, onDiscovered }: EmailStepProps) {
  const { discover } = useCredentials();
  const { wait, waitAfter } = useWait();
  const form = useForm({
    initial: { email },
    names: { email: "email" },
    send: async (draft) => ({ typed: draft.email, methods: await discover(draft.email) }),
    onDone: ({ typed, methods }) => onDiscovered(typed, methods),
    onFailed: waitAfter,
  });
  return (
    <Form
      form={form}
      renderError={(error) => <SignInError error={error} wait={wait} />}
      buttons={
        <SubmitButton form={form} isReady={wait === 0}>
          Continue
        </SubmitButton>
      }
    >
      <TextInput
        label="Email"
        type="email"
        name="email"
        autoComplete="username"
        autoCapitalize="none"
        spellCheck={false}
        required
        withAsterisk={false}
        maxLength={254}
        // The page asks for nothing else, so the focus skips nothing that somebody might want first.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        {...form.text("email")}
        error={form.errorOf("email") && "Enter an address such as name@company.com."}
      />
    </Form>
  );
}
