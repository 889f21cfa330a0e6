import { LinkButton } from "../ui/layout.tsx";
import { Group, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import type { ApiClient } from "../api/client.ts";
import { Copy } from "../ui/copy.tsx";
import { Form, useForm } from "../ui/form.tsx";
import { Loaded } from "../ui/states.tsx";
import { deviceOf } from "../ui/user-agent.ts";
import { factorRequests, type NewFactor } from "./data.ts";
import { CodeField, FactorError } from "./proof-form.tsx";
import { QrCode } from "./qr-code.tsx";

interface NewFactorProps {
  /** Client with the token of a session, or of a sign-in whose user must set up a factor. */
  readonly api: ApiClient;
  readonly onAdded: (added: NewFactor) => void;
  readonly onCancel: () => void;
}

/** Sets up an authenticator app: shows its secret as a QR code and as text, and asks for the first code. */
export function NewApp({ api, onAdded, onCancel }: NewFactorProps) {
  const { beginApp, addApp } = factorRequests(api);
  const secret = useQuery({
    queryKey: ["new-authenticator-app"],
    queryFn: beginApp,
    // The server keeps only the newest secret, so that a refetch would make the shown one useless.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  const form = useForm({
    initial: { code: "" },
    send: ({ code }) => addApp({ code, name: "" }),
    onDone: onAdded,
    onFailed: (_, changes) => changes.edit({ code: "" }),
  });
  const renew = () => {
    form.reset();
    void secret.refetch();
  };
  return (
    <Loaded query={secret}>
      {(made) => (
        <Form
          form={form}
          action="Add the app"
          isReady={form.draft.code.length === 6}
          renderError={(error) => <FactorError error={error} />}
          onCancel={onCancel}
        >
          <Text size="sm">Scan the code with your authenticator app, or type the key into it.</Text>
          <Group align="center" justify="center">
            <QrCode value={made.uri} label="QR code for your authenticator app" />
          </Group>
          <Secret secret={made.secret} />
          <CodeField
            label="Code that the app shows"
            isFirst
            value={form.draft.code}
            error={form.errorOf("code")}
            onChange={(code) => form.edit({ code })}
          />
          {form.errorOf("code") && (
            <LinkButton onClick={renew}>Begin again with a new key</LinkButton>
          )}
        </Form>
      )}
    </Loaded>
  );
}

function Secret({ secret }: { readonly secret: string }) {
  return (
    <div>
      <Text size="sm" fw={500}>
        Key
      </Text>
      <Group gap="xs" wrap="nowrap">
        <Text size="sm" className="mono shrinks">
          {secret.match(/.{1,4}/g)?.join(" ")}
        </Text>
        <Copy value={secret} label="Copy the key" />
      </Group>
    </div>
  );
}

/** Adds a passkey that the browser creates. */
export function NewPasskey({ api, onAdded, onCancel }: NewFactorProps) {
  const form = useForm({
    initial: { name: deviceOf(navigator.userAgent) },
    send: factorRequests(api).addPasskey,
    onDone: onAdded,
  });
  return (
    <Form
      form={form}
      action="Create the passkey"
      renderError={(error) => <FactorError error={error} />}
      onCancel={onCancel}
    >
      <Text size="sm">
        Your browser asks where to keep it: on this device, in a password manager, on a phone or on
        a security key.
      </Text>
      <TextInput
        label="Name"
        description="By which you know it again."
        maxLength={100}
        data-autofocus
        // Autofocus is needed because the control that had the focus was removed with the previous step.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        {...form.text("name")}
      />
    </Form>
  );
}
