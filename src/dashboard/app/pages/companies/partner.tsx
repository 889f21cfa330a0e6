import { Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Route, Switch, useParams } from "wouter";

import { useApi } from "../../session/session.tsx";
import { idOf } from "../../ui/format.ts";
import { PageHeader, PageLink } from "../../ui/layout.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ViewedPartnerContext } from "../webhooks/data/data.ts";
import { READING_PAGES } from "../webhooks/pages.ts";
import { ActAsPartner } from "./act-as-partner.tsx";
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
        <ActAsPartner id={id} name={name} size="xs" />
      </Group>
    </div>
  );
}
