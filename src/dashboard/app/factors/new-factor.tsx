import { Group, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { encode } from "uqr";

import type { ApiClient } from "../api/client.ts";
import { Copy } from "../ui/copy.tsx";
import { Form, useForm } from "../ui/form.tsx";
import { LinkButton } from "../ui/layout.tsx";
import { Loaded } from "../ui/states.tsx";
import { deviceOf } from "../ui/format.ts";
import { factorRequests, newAppOptions, type NewFactor } from "./data.ts";
import { CodeField, FactorError } from "./proof-form.tsx";

interface NewFactorProps {
  /** API client with the token of a session, or of a sign-in whose user must set up a second factor. */
  readonly api: ApiClient;
  readonly onAdded: (added: NewFactor) => void;
  readonly onCancel: () => void;
}

/** Sets up an authenticator app: shows its secret as a QR code and as text, and asks for the first code. */
export function NewApp({ api, onAdded, onCancel }: NewFactorProps) {
  const { addApp } = factorRequests(api);
  const secret = useQuery(newAppOptions(api));
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
            label="Code shown in the app"
            isFirst
            value={form.draft.code}
            error={
              form.errorOf("code") &&
              "is wrong, or the key is older than 15 minutes. Enter the code that the app shows now, or start again with a new key"
            }
            onChange={(code) => form.edit({ code })}
          />
          {form.errorOf("code") && (
            <LinkButton onClick={renew}>Start again with a new key</LinkButton>
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
        Your browser asks where to store it: on this device, in a password manager, on a phone or on
        a security key.
      </Text>
      <TextInput
        label="Name"
        description="To tell this passkey from others."
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

/** Width of the empty margin that QR code readers need, in squares of the code. */
const QR_MARGIN = 4;

interface QrCodeProps {
  readonly value: string;
  readonly label: string;
}

/** Draws a QR code in black on white, also in the dark scheme, because many readers cannot read an inverted code. */
function QrCode({ value, label }: QrCodeProps) {
  const { data, size } = encode(value, { ecc: "M", border: QR_MARGIN });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")))
    .join("");
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      width={200}
      shapeRendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
