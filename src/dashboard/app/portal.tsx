import { Text } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { useRef, type ReactNode } from "react";
import { Redirect, Route, Router, Switch } from "wouter";

import { Acting } from "./shell/acting.tsx";
import { page, PageBoundary } from "./shell/page.tsx";
import { useSeesSecrets } from "./pages/webhooks/data/data.ts";
import { READING_PAGES } from "./pages/webhooks/pages.ts";
import type { Portal as OpenedPortal } from "./session/identity.ts";
import type { PortalLink } from "./session/links.ts";
import { queryClient } from "./session/query-client.ts";
import { BrandTheme } from "./shell/theme.tsx";
import { PageHeader } from "./ui/layout.tsx";
import { ErrorNotice, Loading } from "./ui/states.tsx";
import {
  PortalSession,
  type PortalState,
  useHasHost,
  useReportedHeight,
} from "./session/portal-session.tsx";

const Create = page(() => import("./pages/webhooks/create.tsx"));

/**
 * Renders the webhook pages of a portal link without the navigation menu, in a separate window or in a frame of
 * the partner's website.
 */
export function Portal({ link }: { readonly link: PortalLink }) {
  return (
    <QueryClientProvider client={queryClient}>
      <PortalSession link={link}>
        {(state) => (
          <BrandTheme scheme={link.theme}>
            <Notifications position="top-center" />
            <Content>
              <Router base={link.base}>
                <Shown state={state} />
              </Router>
            </Content>
          </BrandTheme>
        )}
      </PortalSession>
    </QueryClientProvider>
  );
}

function Content({ children }: { readonly children: ReactNode }) {
  const content = useRef<HTMLElement>(null);
  useReportedHeight(content);
  return (
    <main ref={content} className="page portal">
      {children}
    </main>
  );
}

function Shown({ state: { session, ended, error, retry } }: { readonly state: PortalState }) {
  if (ended !== undefined) return <Ended ended={ended} />;
  if (error !== undefined) return <ErrorNotice error={error} retry={retry} />;
  if (session?.portal === undefined) return <Loading />;
  return (
    <PageBoundary>
      {session.portal.isOfOperator && <Acting as={`the owner of ${session.company.name}`} />}
      <Opened portal={session.portal} />
    </PageBoundary>
  );
}

function Opened({ portal: { pages } }: { readonly portal: OpenedPortal }) {
  const mayCreate = useSeesSecrets() && pages.includes("webhooks");
  return (
    <Switch>
      {mayCreate && <Route path="/webhooks/new" component={Create} />}
      {Object.entries(READING_PAGES).map(([path, View]) => (
        <Route key={path} path={path} component={View} />
      ))}
      <Route>
        <Redirect to={`/${pages.length === 1 ? pages[0] : "webhooks"}`} replace />
      </Route>
    </Switch>
  );
}

const WHY = {
  used: "This link was used before, or it is too old: each works once, for a short time.",
  missing: "The page was loaded anew, and a link works once.",
  expired: "It was open for as long as it may be, or whoever opened it has ended it.",
} as const;

function Ended({ ended }: { readonly ended: NonNullable<PortalState["ended"]> }) {
  const hasHost = useHasHost();
  return (
    <>
      <PageHeader title="This view has ended" description={WHY[ended]} />
      <Text>
        {hasHost
          ? "The page around it can open it again: load that page anew."
          : "Ask for a new link where you got this one."}
      </Text>
    </>
  );
}
