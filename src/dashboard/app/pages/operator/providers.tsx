import { Button, Code, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { SecretField } from "../../ui/copy.tsx";
import { CursorPages, useCursorPages } from "../../ui/cursor-pages.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { fieldError } from "../../ui/explain.ts";
import { DialogForm, FormDialog } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { EmptyState } from "../../ui/states.tsx";

interface Secret {
  readonly name: string;
  readonly secret: string;
}

/** The review sites that report events, each with a secret that it signs them with. */
export function Providers() {
  const api = useApi();
  const [isCreating, setCreating] = useState(false);
  const [shown, setShown] = useState<Secret>();
  const providers = useCursorPages(["providers"], (cursor) =>
    api.call("GET", "/admin/providers", { query: { ...(cursor && { cursor }) } }),
  );
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
      <CursorPages
        query={providers}
        noun={["provider", "providers"]}
        empty={
          <EmptyState
            icon="plug"
            title="There is no provider yet"
            action={<Button onClick={() => setCreating(true)}>New provider</Button>}
          >
            Reviews come from providers. Create one for each review site, and give its secret to
            whoever runs the puller.
          </EmptyState>
        }
      >
        {(rows) => (
          <DataTable
            caption="Providers, newest first"
            rows={rows}
            rowKey={(one) => one.id}
            end="Change"
          >
            {(one) => ({
              Name: (
                <Text fw={600} size="sm">
                  {one.name}
                </Text>
              ),
              Slug: <Code>{one.slug}</Code>,
              "Reports to": <Code>/api/v1/providers/{one.slug}/events</Code>,
              Change: <Rotate provider={one} onSecret={setShown} />,
            })}
          </DataTable>
        )}
      </CursorPages>
      <FormDialog opened={isCreating} onClose={() => setCreating(false)} title="New provider">
        <Fields onClose={() => setCreating(false)} onSecret={setShown} />
      </FormDialog>
      <Modal
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        title={<Text fw={650}>The secret of {shown?.name}</Text>}
        closeButtonProps={{ "aria-label": "Close" }}
        closeOnClickOutside={false}
        size="lg"
      >
        <Stack>
          <Text size="sm">
            Copy it now: it is not shown again. Whoever sends events signs the body with it, in{" "}
            <Code>X-Provider-Signature</Code>.
          </Text>
          {shown && <SecretField label="Secret" value={shown.secret} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setShown(undefined)}>
              I have it
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

interface RotateProps {
  readonly provider: { readonly id: number; readonly name: string };
  readonly onSecret: (secret: Secret) => void;
}

function Rotate({ provider, onSecret }: RotateProps) {
  const api = useApi();
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button
        size="xs"
        variant="default"
        onClick={() => setAsking(true)}
        aria-label={`Rotate secret of ${provider.name}`}
      >
        Rotate secret
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={`Rotate the secret of ${provider.name}?`}
        action="Rotate secret"
        danger
        onConfirm={async () => {
          const params = { id: String(provider.id) };
          onSecret(await api.call("POST", "/admin/providers/:id/secret", { params }));
        }}
      >
        The secret until now stops working at once: everything that {provider.name} sends is refused
        until its puller has the new one.
      </Confirm>
    </>
  );
}

interface FieldsProps {
  readonly onClose: () => void;
  readonly onSecret: (secret: Secret) => void;
}

function Fields({ onClose, onSecret }: FieldsProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [slug, setSlug] = useState("");
  return (
    <DialogForm
      action="Create provider"
      fields={["name", "slug"]}
      onCancel={onClose}
      send={() =>
        api.call("POST", "/admin/providers", { body: { name: name.trim(), slug: slug.trim() } })
      }
      onDone={(provider) => {
        void queries.invalidateQueries({ queryKey: ["providers"] });
        onClose();
        onSecret(provider);
      }}
    >
      {(error) => (
        <>
          <TextInput
            label="Name"
            description="As people know the site."
            required
            data-autofocus
            value={name}
            error={fieldError(error, "name")}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Slug"
            description="In addresses and webhook bodies, for ever: a-z, 0-9, - and _."
            required
            value={slug}
            error={fieldError(error, "slug")}
            onChange={(event) => setSlug(event.currentTarget.value)}
          />
        </>
      )}
    </DialogForm>
  );
}
