import { Button, Group, Paper, Text } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session/session.tsx";
import { StateBadge, Tag } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { ActiveSwitch, ConfirmedAction } from "../../ui/dialog.tsx";
import { FilterBar, useFilters } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Facts } from "../../ui/layout.tsx";
import { List } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { VirtualRows } from "../../ui/virtual-rows.tsx";
import { CompanyName, CompanySelect } from "../companies/company-select.tsx";
import { type SsoConnection, ssoConnectionsOptions, useSsoActions } from "./data.ts";
import { SsoForm } from "./sso-form.tsx";

/** Estimated height of a connection card in px, for a connection with one domain and a short issuer URL. */
const CARD_PX = 262;

export function SsoConnections() {
  const { get, set, count, clear } = useFilters(["company"]);
  const [editing, setEditing] = useState<SsoConnection | "new">();
  const create = () => setEditing("new");
  const companyId = idOf(get("company"));
  const connections = useList(
    ssoConnectionsOptions(useApi(), companyId === undefined ? {} : { company_id: companyId }),
  );
  return (
    <>
      <Group justify="space-between" mb="md" gap="sm">
        <Text size="sm" c="dimmed" maw={620} flex="1 1 280px">
          People of a company sign in at its own identity provider (OpenID Connect). Only users who
          exist here can: none is created by it.
        </Text>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={create}>
          New connection
        </Button>
      </Group>
      <FilterBar count={count} onClear={clear}>
        <CompanySelect
          label="Company"
          types={["partner", "account"]}
          placeholder="Every company"
          value={companyId}
          onChange={(company) => set({ company: company && String(company.id) })}
        />
      </FilterBar>
      <List
        list={connections}
        noun={["connection", "connections"]}
        empty={<NoConnection isFiltered={count > 0} onCreate={create} />}
      >
        {() => (
          <VirtualRows
            label="Connections, newest first"
            className="plain-list"
            list={connections}
            height={CARD_PX}
          >
            {(one, rowProps) => (
              <li key={one.id} className="spaced" {...rowProps}>
                <Connection connection={one} onEdit={() => setEditing(one)} />
              </li>
            )}
          </VirtualRows>
        )}
      </List>
      <SsoForm editing={editing} onClose={() => setEditing(undefined)} />
    </>
  );
}

interface NoConnectionProps {
  readonly isFiltered: boolean;
  readonly onCreate: () => void;
}

function NoConnection({ isFiltered, onCreate }: NoConnectionProps) {
  return (
    <EmptyState
      icon="link"
      title={isFiltered ? "This company has no connection" : "No connection yet"}
      action={<Button onClick={onCreate}>New connection</Button>}
    >
      Ask the company for the issuer, the client id and the client secret of an application at its
      identity provider. After the connection is made, give them its redirect URI.
    </EmptyState>
  );
}

interface ConnectionProps {
  readonly connection: SsoConnection;
  readonly onEdit: () => void;
}

function Connection({ connection, onEdit }: ConnectionProps) {
  const { issuer, domains, redirect_uri: redirectUri, password_login: withPassword } = connection;
  return (
    <Paper withBorder p="lg" component="section" aria-label={`Connection with ${issuer}`}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <div className="shrinks">
          <Group gap="xs">
            <Text fw={650}>
              <CompanyName id={connection.company_id} />
            </Text>
            <StateBadge state={connection.is_active ? "active" : "inactive"} />
          </Group>
          <Text size="sm">{issuer}</Text>
        </div>
        <SsoActions connection={connection} onEdit={onEdit} />
      </Group>
      <Facts
        facts={Object.entries({
          Domains: (
            <Group gap={6}>
              {domains.map((one) => (
                <Tag key={one} isQuiet>
                  {one}
                </Tag>
              ))}
            </Group>
          ),
          "Redirect URI": (
            <Group gap={4} wrap="nowrap">
              <Text size="sm" ff="monospace" className="shrinks">
                {redirectUri}
              </Text>
              <Copy value={redirectUri} label="Copy the redirect URI" />
            </Group>
          ),
          "Client id": connection.client_id,
          Passwords: withPassword
            ? "Allowed. Users of these domains choose at sign-in."
            : "Not allowed for these domains.",
          Changed: <ExactTime at={connection.updated_at} />,
        })}
      />
    </Paper>
  );
}

function SsoActions({ connection, onEdit }: ConnectionProps) {
  const { id, issuer, is_active: isActive } = connection;
  const { setActive, remove } = useSsoActions();
  return (
    <Group gap="xs">
      <Button size="xs" variant="default" onClick={onEdit} aria-label={`Change ${issuer}`}>
        Change
      </Button>
      <ActiveSwitch
        isActive={isActive}
        name={issuer}
        noun="the connection"
        onSwitch={(next) => setActive(id, next)}
        done={`The connection is ${isActive ? "inactive" : "active"}.`}
      >
        {isActive
          ? "Nobody signs in through it until it is active again. Passwords work for its domains, where people have one. Whoever is signed in stays so."
          : "People of its domains sign in through it again, as its settings say."}
      </ActiveSwitch>
      <ConfirmedAction
        label="Delete"
        button={{ size: "xs", variant: "subtle", color: "red", "aria-label": `Delete ${issuer}` }}
        title="Delete the connection?"
        action="Delete"
        danger
        onConfirm={() => remove(id)}
        done="The connection is deleted."
      >
        Its settings, its client secret and the links between its people and the identity provider
        are gone. Whoever is signed in stays so.
      </ConfirmedAction>
    </Group>
  );
}
