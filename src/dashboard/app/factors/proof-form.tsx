import { LinkButton, ErrorText } from "../ui/layout.tsx";
import { Alert, Button, Divider, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";

import { type ApiClient, apiErrorOf } from "../api/client.ts";
import { Form, SubmitButton, useForm } from "../ui/form.tsx";
import { minutes } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { ErrorNotice } from "../ui/states.tsx";
import { useWait } from "../ui/time.tsx";
import { type FactorMethod, factorRequests, type Proof } from "./data.ts";
import { hasPasskeys, PasskeyError } from "./data.ts";

/** Number of digits of a code of an authenticator app. */
const APP_CODE_DIGITS = 6;

interface ProofFormProps {
  /** API client with the token of the session or sign-in for which the user proves a factor. */
  readonly api: ApiClient;
  /** Ways in which the user can prove a second factor. */
  readonly methods: readonly FactorMethod[];
  readonly onProof: (proof: Proof) => Promise<void>;
}

/**
 * Asks for a proof of a second factor: a passkey or a code of the authenticator app, and a recovery code if the
 * user has neither at hand.
 */
export function ProofForm({ api, methods, onProof }: ProofFormProps) {
  const hasPasskey = methods.includes("passkey") && hasPasskeys();
  const hasApp = methods.includes("totp");
  const hasRecovery = methods.includes("recovery_code");
  const [isRecovering, setRecovering] = useState(hasRecovery && !hasPasskey && !hasApp);
  if (isRecovering)
    return (
      <Stack>
        <RecoveryForm onProof={onProof} />
        {(hasPasskey || hasApp) && (
          <LinkButton onClick={() => setRecovering(false)}>
            {hasPasskey ? "Use a passkey instead" : "Use the authenticator app instead"}
          </LinkButton>
        )}
      </Stack>
    );
  return (
    <Stack>
      {hasPasskey && <PasskeyButton api={api} onProof={onProof} />}
      {hasPasskey && hasApp && <Divider label="or" />}
      {hasApp && <CodeForm isFirst={!hasPasskey} onProof={onProof} />}
      {!hasPasskey && !hasApp && (
        <Text size="sm">This browser cannot use your passkey. Try another browser or device.</Text>
      )}
      {hasRecovery && (
        <LinkButton onClick={() => setRecovering(true)}>Use a recovery code</LinkButton>
      )}
    </Stack>
  );
}

function PasskeyButton({ api, onProof }: Omit<ProofFormProps, "methods">) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: async () => onProof(await factorRequests(api).proofByPasskey()),
  });
  return (
    <Stack gap="sm">
      <Button
        leftSection={<Icon name="key" />}
        loading={isPending}
        onClick={() => mutate()}
        data-autofocus
        // Autofocus is needed because the control that had the focus was removed with the previous step.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
      >
        Use your passkey
      </Button>
      {error !== null && <FactorError error={error} />}
    </Stack>
  );
}

interface CodeFormProps extends Pick<ProofFormProps, "onProof"> {
  /** True if no other form is above this one on the page. Its field then gets the focus. */
  readonly isFirst: boolean;
}

/** Form for a code of the authenticator app. It is sent when the last digit is entered. */
function CodeForm({ isFirst, onProof }: CodeFormProps) {
  const { wait, waitAfter } = useWait();
  const form = useForm({
    initial: { code: "" },
    send: onProof,
    onFailed: (error, changes) => {
      waitAfter(error);
      changes.edit({ code: "" });
    },
  });
  const { code } = form.draft;
  const send = useEffectEvent(() => form.submit());
  useEffect(() => {
    if (code.length === APP_CODE_DIGITS) send();
  }, [code]);
  const isLocked = apiErrorOf(form.error)?.code === "account_locked";
  return (
    <Form
      form={form}
      renderError={(error) => <FactorError error={error} />}
      buttons={
        <SubmitButton form={form} isReady={wait === 0 && code.length === APP_CODE_DIGITS}>
          Check the code
        </SubmitButton>
      }
    >
      <CodeField
        label="Code from your authenticator app"
        description="The 6 digits that the app shows now."
        isFirst={isFirst}
        isDisabled={wait > 0}
        value={code}
        error={isLocked ? undefined : form.reasonOf("code")}
        onChange={(next) => form.edit({ code: next })}
      />
      {isLocked && (
        <ErrorText>
          {wait > 0
            ? `Too many wrong codes were entered. Codes are locked for ${minutes(wait)}.`
            : "You can try again now."}
        </ErrorText>
      )}
    </Form>
  );
}

interface CodeFieldProps {
  readonly label: string;
  readonly description?: string;
  readonly isFirst: boolean;
  readonly isDisabled?: boolean;
  readonly value: string;
  /** Error of the API. It continues a sentence that begins with the name of the field. */
  readonly error: string | undefined;
  readonly onChange: (code: string) => void;
}

/**
 * Field for the six digits of an authenticator app. Drops all other characters, so that a code with spaces can be
 * pasted.
 */
export function CodeField(props: CodeFieldProps) {
  const { label, description, isFirst, isDisabled = false, value, error, onChange } = props;
  return (
    <TextInput
      label={label}
      description={description}
      name="code"
      inputMode="numeric"
      autoComplete="one-time-code"
      required
      withAsterisk={false}
      data-autofocus={isFirst || undefined}
      // Autofocus is needed because the control that had the focus was removed with the previous step.
      // oxlint-disable-next-line jsx-a11y/no-autofocus
      autoFocus={isFirst}
      disabled={isDisabled}
      classNames={{ input: "mono" }}
      value={value}
      error={error && `The code ${error}.`}
      onChange={(event) =>
        onChange(event.currentTarget.value.replaceAll(/\D/g, "").slice(0, APP_CODE_DIGITS))
      }
    />
  );
}

function RecoveryForm({ onProof }: Pick<ProofFormProps, "onProof">) {
  const form = useForm({
    initial: { recovery_code: "" },
    send: (draft) => onProof({ recovery_code: draft.recovery_code.trim() }),
  });
  const error = form.reasonOf("recovery_code");
  return (
    <Form
      form={form}
      isCheckedByBrowser
      renderError={(whole) => <FactorError error={whole} />}
      buttons={<SubmitButton form={form}>Use the recovery code</SubmitButton>}
    >
      <TextInput
        label="Recovery code"
        description="24 letters and digits. Each code works once."
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        required
        withAsterisk={false}
        maxLength={64}
        data-autofocus
        // Autofocus is needed because the control that had the focus was removed with the previous step.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        classNames={{ input: "mono" }}
        {...form.text("recovery_code")}
        error={error && `The code ${error}.`}
      />
    </Form>
  );
}

/** Shows why a factor was not proved or added: the error of the browser's passkey dialog, or the error of the API. */
export function FactorError({ error }: { readonly error: Error }) {
  if (!(error instanceof PasskeyError)) return <ErrorNotice error={error} />;
  return (
    <Alert color="yellow" role="alert" icon={<Icon name="alert" />}>
      {error.message}
    </Alert>
  );
}
