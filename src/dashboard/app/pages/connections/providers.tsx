import { Button, Code, Group, Text } from "@mantine/core";
import { useState } from "react";

import { ConfirmedAction } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { TableList } from "../../ui/list.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { useProviderActions, useProviders, type ProviderSecret } from "./data.ts";
import { ProviderForm } from "./provider-form.tsx";
import { ProviderSecretDialog } from "./provider-secret-dialog.tsx";

/** Providers are the review sites that report events; each signs them with a secret of its own. */
export function Providers() {
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<ProviderSecret>();
  return (
    <>
      <Group justify="space-between" mb="md" gap="sm">
        <Text size="sm" c="dimmed" maw={620} flex="1 1 280px">
          A provider reports what happens on a review site, signed with its secret.
        </Text>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setCreating(true)}>
          New provider
        </Button>
      </Group>
      <TableList
        list={useProviders()}
        noun={["provider", "providers"]}
        empty={<NoProvider onCreate={() => setCreating(true)} />}
        table={{
          caption: "Providers, newest first",
          end: "Change",
          columns: (one) => ({
            Name: (
              <Text fw={600} size="sm">
                {one.name}
              </Text>
            ),
            Slug: <Code>{one.slug}</Code>,
            "Reports to": (
              <Code>
                /api/v1/providers/
                <wbr />
                {one.slug}
                <wbr />
                /events
              </Code>
            ),
            Change: <RotateSecret provider={one} onSecret={setSecret} />,
          }),
        }}
      />
      <ProviderForm opened={isCreating} onClose={() => setCreating(false)} onSecret={setSecret} />
      <ProviderSecretDialog provider={secret} onClose={() => setSecret(undefined)} />
    </>
  );
}

function NoProvider({ onCreate }: { readonly onCreate: () => void }) {
  return (
    <EmptyState
      icon="plug"
      title="There is no provider yet"
      action={<Button onClick={onCreate}>New provider</Button>}
    >
      Reviews come from providers. Create one for each review site, and give its secret to whoever
      runs the puller.
    </EmptyState>
  );
}

interface RotateSecretProps {
  readonly provider: { readonly id: number; readonly name: string };
  readonly onSecret: (secret: ProviderSecret) => void;
}

function RotateSecret({ provider: { id, name }, onSecret }: RotateSecretProps) {
  const { rotateSecret } = useProviderActions();
  return (
    <ConfirmedAction
      renderButton={(ask) => (
        <Button size="xs" variant="default" onClick={ask} aria-label={`Rotate secret of ${name}`}>
          Rotate secret
        </Button>
      )}
      title={`Rotate the secret of ${name}?`}
      action="Rotate secret"
      danger
      onConfirm={async () => onSecret(await rotateSecret(id))}
    >
      The secret until now stops working at once: everything that {name} sends is refused until its
      puller has the new one.
    </ConfirmedAction>
  );
}
