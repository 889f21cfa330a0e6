import { Button } from "@mantine/core";
import { useState } from "react";

import { List } from "../../ui/list.tsx";
import { Rows } from "../../ui/rows.tsx";
import { Section } from "../../ui/section.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { ClientForm } from "./client-form.tsx";
import { isPlatformPath, type ClientsPath } from "./client-model.ts";
import { ClientRow } from "./client-row.tsx";
import { ClientSecret } from "./client-secret.tsx";
import { useOAuthClients, type NewClientSecret, type OAuthClient } from "./data.ts";

export function OAuthClientsSection({ path }: { readonly path: ClientsPath }) {
  const [editing, setEditing] = useState<OAuthClient | "new">();
  const [secret, setSecret] = useState<NewClientSecret>();
  return (
    <Section
      title="OAuth clients"
      description={
        isPlatformPath(path)
          ? "Apps of all tenants. First-party apps are trusted: they ask nobody for consent, and may be given the password grant."
          : "Apps that sign in your customers on our own page and then act for them, as far as their scopes go."
      }
      actions={
        <Button variant="default" onClick={() => setEditing("new")}>
          Create client
        </Button>
      }
    >
      <List list={useOAuthClients(path)} more="Show older ones" empty={<NoClient />}>
        {(rows) => (
          <Rows label="OAuth clients">
            {rows.map((one) => (
              <ClientRow
                key={one.client_id}
                client={one}
                path={path}
                onEdit={() => setEditing(one)}
                onSecret={setSecret}
              />
            ))}
          </Rows>
        )}
      </List>
      <ClientForm
        path={path}
        editing={editing}
        onClose={() => setEditing(undefined)}
        onSecret={setSecret}
      />
      <ClientSecret client={secret} onClose={() => setSecret(undefined)} />
    </Section>
  );
}

function NoClient() {
  return (
    <EmptyState icon="plug" title="No OAuth clients">
      Create one for each app, put its client_id and secret into the app&apos;s configuration, and
      send people to <code>/oauth/authorize</code>.
    </EmptyState>
  );
}
