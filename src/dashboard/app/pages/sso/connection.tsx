import { Button, Code, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useLocation, useParams } from "wouter";

import { apiErrorOf } from "../../api/client.ts";
import { roleName } from "../../session/roles.ts";
import { useApi } from "../../session/session.tsx";
import { BreakableText, StateBadge } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { ActiveSwitch, ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { Dimmed, ErrorText, Facts, PageHeader, PageLink, Section } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { CompanyName } from "../companies/company-select.tsx";
import { companyOptions } from "../companies/data.ts";
import { UrlText } from "../webhooks/stats/health-summary.tsx";
import { ConnectionForm } from "./connection-form.tsx";
import {
  connectionState,
  type DomainProof,
  type SsoConnection,
  ssoConnectionOptions,
  useSsoActions,
} from "./data.ts";

const BACK = { href: "/sso", title: "Single sign-on" };

export function Page() {
  const { id = "" } = useParams();
  const connection = useQuery(ssoConnectionOptions(useApi(), id));
  const company = useQuery(companyOptions(useApi(), connection.data?.company_id)).data;
  if (apiErrorOf(connection.error)?.status === 404) return <NotFound />;
  if (connection.data === undefined || company === undefined)
    return (
      <>
        <PageHeader title="Single sign-on" back={BACK} />
        <Loaded query={connection}>{() => null}</Loaded>
      </>
    );
  return <Shown connection={connection.data} name={company.name} />;
}

interface ConnectionProps {
  readonly connection: SsoConnection;
}

interface NamedProps extends ConnectionProps {
  /** Name of the company. */
  readonly name: string;
}

function Shown({ connection, name }: NamedProps) {
  const state = connectionState(connection);
  return (
    <>
      <PageHeader
        title={`Single sign-on of ${name}`}
        back={BACK}
        description={<StateBadge state={state} />}
        actions={<Actions connection={connection} name={name} />}
      />
      <Stack gap="lg">
        {state === "unverified" && (
          <Text size="sm">
            Until a domain is verified, only existing users whose identity provider reports a
            verified address can sign in.
          </Text>
        )}
        <IdentityProvider connection={connection} />
        <Section
          title="Email domains"
          description="Users with an address in these domains sign in here. Verify each domain with a DNS record."
        >
          <Stack gap="lg">
            {connection.domain_proofs.map((proof) => (
              <Domain key={proof.domain} connection={connection} proof={proof} />
            ))}
          </Stack>
        </Section>
        <Section title="Users">
          <Facts facts={factsOf(connection)} />
        </Section>
      </Stack>
    </>
  );
}

function Actions({ connection, name }: NamedProps) {
  const { id, is_active: isActive } = connection;
  const { setActive, remove } = useSsoActions();
  const [, navigate] = useLocation();
  return (
    <>
      <DialogButton
        label="Edit"
        title={`Edit single sign-on of ${name}`}
        button={{ variant: "default" }}
      >
        {(close) => <ConnectionForm connection={connection} onClose={close} />}
      </DialogButton>
      <ActiveSwitch
        isActive={isActive}
        name={`single sign-on of ${name}`}
        button={{ size: "sm" }}
        onSwitch={(next) => setActive(id, next)}
        done={`Single sign-on of ${name} ${isActive ? "deactivated" : "activated"}.`}
      >
        {isActive
          ? "Nobody can sign in through this connection until it is active again. Users of its domains can sign in with a password if they have one. Current sessions stay active."
          : "Users of its domains can sign in through this connection again."}
      </ActiveSwitch>
      <ConfirmedAction
        label="Delete"
        button={{ variant: "subtle", color: "red" }}
        title={`Delete single sign-on of ${name}?`}
        action="Delete connection"
        danger
        onConfirm={async () => {
          await remove(id);
          navigate("/sso");
        }}
        done="Connection deleted."
      >
        The settings, the client secret and the links between users and the identity provider are
        deleted. Users without a password cannot sign in any more. Current sessions stay active.
      </ConfirmedAction>
    </>
  );
}

function IdentityProvider({ connection }: ConnectionProps) {
  const { issuer, client_id: clientId, redirect_uri: redirectUri, company_id: id } = connection;
  return (
    <Section
      title="Identity provider"
      description="The company registers the redirect URI for its application at the identity provider."
    >
      <Facts
        facts={[
          ["Company", <CompanyLink key="company" id={id} />],
          [
            "Redirect URI",
            <CopyableText key="uri" text={redirectUri} label="Copy the redirect URI" />,
          ],
          ["Sign-in page", <TestSignIn key="test" connection={connection} />],
          ["Issuer", <UrlText key="issuer" url={issuer} />],
          ["Client ID", <Code key="client">{clientId}</Code>],
          ["Created", <ExactTime key="made" at={connection.created_at} />],
          ["Last change", <ExactTime key="changed" at={connection.updated_at} />],
        ]}
      />
    </Section>
  );
}

/** Address of the sign-in page, where a user of the company's domains is sent to its identity provider. */
function TestSignIn({ connection }: ConnectionProps) {
  const { redirect_uri: redirectUri, domain_proofs: proofs } = connection;
  return (
    <>
      <CopyableText
        text={new URL("/dashboard", redirectUri).href}
        label="Copy the address of the sign-in page"
      />
      <Dimmed>
        To test the sign-in, open it in a private window and enter an address at{" "}
        {proofs[0]?.domain ?? "a domain"}.
      </Dimmed>
    </>
  );
}

function CompanyLink({ id }: { readonly id: number }) {
  return (
    <PageLink href={`/companies/${id}`} inherit>
      <CompanyName id={id} />
    </PageLink>
  );
}

function CopyableText({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <Group gap={4} wrap="nowrap" component="span">
      <UrlText url={text} />
      <Copy value={text} label={label} />
    </Group>
  );
}

function factsOf({ password_login: hasPasswords, trust_email: trusts, ...one }: SsoConnection) {
  const { new_users: made, domain_proofs: proofs } = one;
  const isProved = proofs.some(({ proved_at: at }) => at !== null);
  return [
    ["Passwords", hasPasswords ? "Also accepted" : "Not accepted: only single sign-on"],
    [
      "New users",
      made === null
        ? "Not created: invite each user first, under Users"
        : `Created at their first sign-in as ${roleName(made.role)}${isProved ? "" : ", once a domain is verified by DNS"}`,
    ],
    [
      "Unverified addresses",
      trusts
        ? "Trusted in domains that are verified by DNS, if the provider does not say"
        : "Refused",
    ],
  ] as const;
}

interface DomainProps extends ConnectionProps {
  readonly proof: DomainProof;
}

/** Shows whether a domain is verified. If it is not, shows the record that the company creates, and a button. */
function Domain({ connection, proof }: DomainProps) {
  const { prove } = useSsoActions();
  const { domain, proved_at: provedAt, record_name: record, record_value: value } = proof;
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => prove(connection.id, domain),
    onSuccess: () => notify.done(`${domain} verified.`),
  });
  const errors = apiErrorOf(error)?.errors["domain"];
  return (
    <Stack gap="xs" component="section" aria-label={domain}>
      <Group justify="space-between" gap="sm">
        <Group gap="xs">
          <Text fw={600}>
            <BreakableText text={domain} />
          </Text>
          <StateBadge state={provedAt === null ? "unverified" : "verified"} />
        </Group>
        {provedAt === null && (
          <Button
            size="xs"
            loading={isPending}
            onClick={() => mutate()}
            aria-label={`Verify ${domain}`}
          >
            Verify
          </Button>
        )}
      </Group>
      {provedAt === null ? (
        <>
          <Text size="sm" c="dimmed">
            The company creates this TXT record in its DNS, then you verify. A new record can take
            some minutes until it is seen.
          </Text>
          <Facts
            facts={[
              ["Name", <CopyableText key="name" text={record} label="Copy the name" />],
              ["Value", <CopyableText key="value" text={value} label="Copy the value" />],
            ]}
          />
          {error !== null && (
            <ErrorText>
              {errors === undefined ? error.message : `${domain} ${errors.join(", ")}.`}
            </ErrorText>
          )}
        </>
      ) : (
        <Text size="sm" c="dimmed">
          Verified by DNS <Time at={provedAt} />. The record is not needed any more.
        </Text>
      )}
    </Stack>
  );
}
