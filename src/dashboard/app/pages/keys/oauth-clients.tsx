import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { EmptyState, ErrorNotice, Loading } from "../../ui/states.tsx";
import { ClientForm, type Saved } from "./client-form.tsx";
import type { ClientsPath } from "./client-model.ts";
import { ClientRow, type ClientAction } from "./client-row.tsx";
import { ShownOnce } from "./shown-once.tsx";
import { useClients, type OAuthClient } from "./use-clients.ts";

type Asked =
  | { readonly action: "create"; readonly client?: undefined }
  | { readonly action: ClientAction; readonly client: OAuthClient };

export function OAuthClients({ path }: { readonly path: ClientsPath }) {
  const { clients, error, retry, next, refresh } = useClients(path);
  const [asked, setAsked] = useState<Asked>();
  const [shown, setShown] = useState<{ clientId: string; secret: string }>();
  const close = () => setAsked(undefined);
  const isPlatform = path === "/sso/clients";
  const reveal = ({ client_id: clientId, client_secret: secret }: Saved) => {
    if (secret !== null && secret !== undefined) setShown({ clientId, secret });
    void refresh();
  };
  return (
    <Section
      title="OAuth clients"
      description={
        isPlatform
          ? "Apps of all tenants. First-party apps are trusted: they ask nobody for consent, and may be given the password grant."
          : "Apps that sign in your customers on our own page and then act for them, as far as their scopes go."
      }
      actions={
        <Button variant="default" onClick={() => setAsked({ action: "create" })}>
          Create client
        </Button>
      }
    >
      {error !== null && <ErrorNotice error={error} retry={retry} />}
      {error === null && clients === undefined && <Loading />}
      {clients?.length === 0 && (
        <EmptyState icon="plug" title="No OAuth clients">
          Create one for each app, put its client_id and secret into the app&apos;s configuration,
          and send people to <code>/oauth/authorize</code>.
        </EmptyState>
      )}
      {clients !== undefined && clients.length > 0 && (
        <ul className="rows" aria-label="OAuth clients">
          {clients.map((client) => (
            <ClientRow
              key={client.client_id}
              client={client}
              isPlatform={isPlatform}
              onAction={(action) => setAsked({ action, client })}
            />
          ))}
        </ul>
      )}
      {next !== undefined && (
        <Group justify="center">
          <Button variant="default" onClick={next}>
            Show older ones
          </Button>
        </Group>
      )}
      <ClientForm
        path={path}
        asked={asked?.action === "create" || asked?.action === "edit" ? asked : undefined}
        onClose={close}
        onSaved={reveal}
      />
      <Endings path={path} asked={asked} onClose={close} onDone={reveal} onDeleted={refresh} />
      <ShownOnce
        title="The client's secret"
        label="client_secret"
        secret={shown?.secret}
        onClose={() => setShown(undefined)}
      >
        <Text size="sm">
          For your server only, with the client_id <code>{shown?.clientId}</code>. Never put it into
          a browser or a mobile app.
        </Text>
      </ShownOnce>
    </Section>
  );
}

/** What stops something that may be in use. */
function Endings({
  path,
  asked,
  onClose,
  onDone,
  onDeleted,
}: {
  readonly path: ClientsPath;
  readonly asked: Asked | undefined;
  readonly onClose: () => void;
  readonly onDone: (saved: Saved) => void;
  readonly onDeleted: () => Promise<void>;
}) {
  const api = useApi();
  const client = asked?.client;
  const id = client?.client_id ?? "";
  return (
    <>
      <Confirm
        opened={asked?.action === "rotate"}
        onClose={onClose}
        title="Rotate the secret?"
        action="Rotate the secret"
        danger
        onConfirm={async () =>
          onDone(await api.call("POST", `${path}/:id/secret`, { params: { id } }))
        }
      >
        The present secret of <strong>{client?.name}</strong> stops working at once: the app gets no
        tokens until it has the new one. Tokens that it has already stay good.
      </Confirm>
      <Confirm
        opened={asked?.action === "delete"}
        onClose={onClose}
        title="Delete the client?"
        action="Delete the client"
        danger
        onConfirm={async () => {
          await api.call("DELETE", `${path}/:id`, { params: { id } });
          await onDeleted();
          notify.done("The client is deleted, and its tokens are ended.");
        }}
      >
        <strong>{client?.name}</strong> can sign in nobody any more, and all tokens that it holds
        end at once, for every person who uses it. This cannot be taken back.
      </Confirm>
    </>
  );
}
