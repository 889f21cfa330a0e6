import { Button, Group, Text } from "@mantine/core";
import { useQuery, useMutation } from "@tanstack/react-query";
import { Route, Switch, useParams } from "wouter";

import { answerOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { CopyTextButton } from "../../ui/copy.tsx";
import { ConfirmedAction, Dialog } from "../../ui/dialog.tsx";
import { idOf } from "../../ui/format.ts";
import { PageHeader, PageLink } from "../../ui/layout.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { ViewedPartnerContext } from "../webhooks/data/data.ts";
import { READING_PAGES } from "../webhooks/pages.ts";
import { companyOptions } from "./data.ts";
import css from "./partner.module.css";

const BACK = { href: "~/dashboard/companies", title: "Companies" };

/** A partner's webhook pages as an operator sees them: without secrets, and with few controls. */
export function Page() {
  const { partner = "" } = useParams();
  const id = idOf(partner);
  const company = useQuery(companyOptions(useApi(), id));
  if (id === undefined) return <NotFound />;
  if (company.data === undefined)
    return (
      <>
        <PageHeader title="Partner" back={BACK} />
        <Loaded query={company}>{() => null}</Loaded>
      </>
    );
  const { name, type } = company.data;
  if (type !== "partner") return <NotFound />;
  return (
    <ViewedPartnerContext value={{ id, name }}>
      <Banner name={name} id={id} />
      <Switch>
        {Object.entries(READING_PAGES).map(([path, View]) => (
          <Route key={path} path={path} component={View} />
        ))}
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </ViewedPartnerContext>
  );
}

function Banner({ id, name }: { readonly id: number; readonly name: string }) {
  return (
    <div className={css.viewed}>
      <Text size="sm" className="shrinks" role="note">
        <strong>Viewing {name}.</strong> You see everything except secrets, and can disable or
        enable a subscription.
      </Text>
      <Group gap="md" component="nav" aria-label={`Pages of ${name}`}>
        <PageLink href="/webhooks">Webhooks</PageLink>
        <PageLink href={`~/dashboard/companies/${id}`}>Back to {name}</PageLink>
        <PageLink href={`~/dashboard/audit?company=${id}`}>Activity</PageLink>
        <ActAsPartner id={id} name={name} />
      </Group>
    </div>
  );
}

interface PartnerProps {
  readonly id: number;
  readonly name: string;
}

/**
 * Button with which an operator opens the webhook pages of a partner and acts there as its owner. The audit log records
 * each link, so the link is created only after the operator has confirmed.
 */
function ActAsPartner({ id, name }: PartnerProps) {
  const { admin } = useApi();
  const {
    mutateAsync,
    data,
    reset: close,
  } = useMutation({
    mutationFn: () =>
      answerOf(
        admin.partners({ id })["portal-links"].post({ pages: ["webhooks"], access: "write" }),
      ),
  });
  return (
    <>
      <ConfirmedAction
        label="Act as partner"
        button={{ size: "xs" }}
        title={`Act as ${name}?`}
        action="Continue"
        onConfirm={() => mutateAsync()}
      >
        You get a link to the webhook pages of {name} and act there as its owner, but cannot see
        secrets, add webhooks or change alerts. The audit log records all that you do.
      </ConfirmedAction>
      <Dialog opened={data !== undefined} onClose={close} title={`Act as ${name}`} centered>
        {data !== undefined && (
          <>
            <Text size="sm" mb="sm">
              The link works once and expires <Time at={data.expires_at} mayBeAhead />.
            </Text>
            <Group justify="flex-end" gap="sm">
              <CopyTextButton value={data.url} variant="default">
                Copy link
              </CopyTextButton>
              <Button
                component="a"
                href={data.url}
                target="_blank"
                rel="noopener"
                data-autofocus
                // The link works once. Closes later, because the browser follows the link after the click.
                onClick={() => setTimeout(close)}
              >
                Open portal
              </Button>
            </Group>
          </>
        )}
      </Dialog>
    </>
  );
}
