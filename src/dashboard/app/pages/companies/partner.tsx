import { Alert, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Redirect, Route, Switch, useParams } from "wouter";

import { useApi } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { idOf } from "../../ui/format.ts";
import { PageHeader, PageLink } from "../../ui/layout.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { READING_PAGES } from "../webhooks/pages.ts";
import { ViewedPartnerContext } from "../webhooks/data/data.ts";
import { companyOptions } from "./data.ts";
import { ActAsPartner } from "./act-as-partner.tsx";

const BACK = { href: "~/dashboard/companies", title: "Companies" };

/** A partner's webhook pages as an operator sees them: read-only, without controls that change anything. */
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
        <Route path="/">
          <Redirect to="/webhooks" replace />
        </Route>
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </ViewedPartnerContext>
  );
}

function Banner({ id, name }: { readonly id: number; readonly name: string }) {
  return (
    <Alert
      color="blue"
      mb="md"
      icon={<Icon name="eye" />}
      role="note"
      title={`Viewing ${name} (read-only)`}
    >
      <Group gap="md">
        <Text size="sm">You see everything except secrets.</Text>
        <ActAsPartner id={id} name={name} />
        <PageLink href={`~/dashboard/users?company=${id}`} underline="always">
          Users
        </PageLink>
        <PageLink href={`~/dashboard/audit?company=${id}`} underline="always">
          Activity
        </PageLink>
        <PageLink href="~/dashboard/companies" underline="always">
          Leave
        </PageLink>
      </Group>
    </Alert>
  );
}
