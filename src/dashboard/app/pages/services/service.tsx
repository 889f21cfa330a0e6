import { Alert, Code, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation, useParams } from "wouter";

import { apiErrorOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { counted, idOf } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Facts, PageHeader, PageLink, Section } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { SecretDialog } from "../../ui/secret.tsx";
import { EmptyState, Loaded, NotFound } from "../../ui/states.tsx";
import { Day, ExactTime, LastUsed, Time } from "../../ui/time.tsx";
import { CompanyName } from "../companies/company-select.tsx";
import {
  endAfter,
  isServiceScope,
  type Service,
  SERVICE_SCOPES,
  serviceOptions,
  type ServiceToken,
  serviceTokensOptions,
  type TokenDraft,
  useServiceActions,
  useServiceTokenActions,
} from "./data.ts";
import { Expiry, SOON_DAYS } from "./expiry.tsx";
import { ServiceForm } from "./service-form.tsx";

const BACK = { href: "/services", title: "Services" };

export function Page() {
  const { id: text = "" } = useParams();
  const id = idOf(text) ?? 0;
  const service = useQuery(serviceOptions(useApi(), id));
  if (id === 0 || apiErrorOf(service.error)?.status === 404) return <NotFound />;
  if (service.data === undefined)
    return (
      <>
        <PageHeader title="Service" back={BACK} />
        <Loaded query={service}>{() => null}</Loaded>
      </>
    );
  return <Shown service={service.data} />;
}

interface ServiceProps {
  readonly service: Service;
}

function Shown({ service }: ServiceProps) {
  return (
    <>
      <PageHeader
        title={service.name}
        back={BACK}
        actions={
          <>
            <DialogButton
              label="Edit"
              title={`Edit ${service.name}`}
              button={{ variant: "default" }}
            >
              {(close) => <ServiceForm service={service} onClose={close} />}
            </DialogButton>
            <DeleteService service={service} />
          </>
        }
      />
      <Stack gap="lg">
        <Tokens service={service} />
        <Section
          title="Access"
          description="A change limits the service's tokens immediately. If you allow more, create a new token: existing ones keep what they could do."
        >
          <Facts facts={factsOf(service)} />
        </Section>
      </Stack>
    </>
  );
}

function factsOf({ scopes, partner_ids: ids, ...service }: Service) {
  return [
    [
      "Can",
      <Stack key="scopes" gap={2}>
        {scopes.map((one) => (
          <span key={one}>
            {isServiceScope(one) && `${SERVICE_SCOPES[one].title} `}
            <Code>{one}</Code>
          </span>
        ))}
      </Stack>,
    ],
    [
      "Partners",
      ids === null ? (
        "All partners, also those created later"
      ) : (
        <Stack key="partners" gap={2}>
          {ids.map((id) => (
            <PageLink key={id} href={`/companies/${id}`} inherit>
              <CompanyName id={id} />
            </PageLink>
          ))}
        </Stack>
      ),
    ],
    ["ID", <CopyableId key="id" id={String(service.id)} label="Copy the service's ID" />],
    ["Created", <ExactTime key="created" at={service.created_at} />],
    ["Last change", <ExactTime key="changed" at={service.updated_at} />],
  ] as const;
}

function DeleteService({ service: { id, name } }: ServiceProps) {
  const { remove } = useServiceActions();
  const [, navigate] = useLocation();
  return (
    <ConfirmedAction
      label="Delete"
      button={{ color: "red", variant: "subtle", "aria-label": `Delete ${name}` }}
      title={`Delete ${name}?`}
      action="Delete service"
      danger
      onConfirm={async () => {
        await remove(id);
        navigate("/services");
      }}
      done={`${name} deleted.`}
    >
      All its tokens stop working immediately, and its actions in the inbox are rejected. The
      actions that it has recorded stay. This cannot be undone.
    </ConfirmedAction>
  );
}

function Tokens({ service }: ServiceProps) {
  const { id, name } = service;
  const list = useList(serviceTokensOptions(useApi(), id));
  const [token, setToken] = useState<string>();
  const create = (
    <DialogButton label="New token" title={`New token of ${name}`}>
      {(close) => <NewToken id={id} onClose={close} onToken={setToken} />}
    </DialogButton>
  );
  return (
    <Section
      title="Tokens"
      description="The program sends one of them with each request. To replace a token without a break, create the new one first, deploy it, and then revoke the old one."
      actions={create}
    >
      <TableList
        list={list}
        empty={
          <EmptyState icon="key" title="No token yet">
            Without a token, {name} cannot call the API.
          </EmptyState>
        }
        table={{
          caption: "Tokens, newest first",
          end: "Actions",
          columns: (one) => ({
            Name: <CellText title={one.name} />,
            Created: <Time at={one.created_at} />,
            Expires: <Expiry at={one.expires_at} />,
            "Last used": <LastUsed at={one.last_used_at} />,
            Actions: <RevokeToken service={service} token={one} />,
          }),
        }}
      />
      <SecretDialog
        title={`The token of ${name}`}
        label="Token"
        secret={token}
        onClose={() => setToken(undefined)}
      >
        <Text size="sm">
          Put it into the configuration of the program. It is sent in the header{" "}
          <Code>Authorization: Bearer …</Code>
        </Text>
      </SecretDialog>
    </Section>
  );
}

interface RevokeTokenProps extends ServiceProps {
  readonly token: ServiceToken;
}

function RevokeToken({ service: { id, name }, token }: RevokeTokenProps) {
  const { revoke } = useServiceTokenActions(id);
  return (
    <ConfirmedAction
      label="Revoke"
      button={{ size: "xs", "aria-label": `Revoke ${token.name}` }}
      title={`Revoke ${token.name}?`}
      action="Revoke token"
      danger
      onConfirm={() => revoke(token.id)}
      done={`${token.name} revoked.`}
    >
      Requests of {name} with this token are refused from now on. This cannot be undone.
    </ConfirmedAction>
  );
}

/** Lives of tokens in days that the form offers. The API allows up to 400 (contract 10.7). */
const LIVES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["180", "180 days"],
  ["365", "1 year"],
] as const;

interface NewTokenProps {
  readonly id: number;
  readonly onClose: () => void;
  readonly onToken: (token: string) => void;
}

function NewToken({ id, onClose, onToken }: NewTokenProps) {
  const { create } = useServiceTokenActions(id);
  const form = useForm<TokenDraft, { readonly access_token: string }>({
    initial: { name: "", days: "365" },
    send: create,
    onDone: ({ access_token: token }) => {
      onClose();
      onToken(token);
    },
  });
  const { days } = form.draft;
  return (
    <Form form={form} action="Create token" onCancel={onClose}>
      <TextInput
        label="Name"
        description="Where the token is used, for example “Production”."
        required
        data-autofocus
        {...form.text("name")}
      />
      <NativeSelect
        label="Valid for"
        value={days}
        data={LIVES.map(([value, label]) => ({ value, label }))}
        onChange={(event) => form.edit({ days: event.currentTarget.value })}
      />
      <Alert color="blue" icon={<Icon name="clock" />}>
        The token expires on <Day at={endAfter(days)} />. This page marks it {SOON_DAYS} days
        before, but no mail is sent: note the date, and replace the token in time.
      </Alert>
      <Text size="sm" c="dimmed">
        You see the token once, after you create it. A service has at most {counted(20, "token")}.
      </Text>
    </Form>
  );
}
