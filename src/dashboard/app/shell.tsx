import {
  AppShell,
  Avatar,
  Burger,
  Group,
  Menu,
  NavLink,
  Text,
  UnstyledButton,
  VisuallyHidden,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";

import type { AREAS } from "./pages.ts";
import { useSession, useSessionState } from "./session.tsx";
import { Icon } from "./ui/icon.tsx";
import { roleName } from "./ui/words.ts";

/** What surrounds every page of somebody who is signed in. */
export function Shell({
  areas,
  children,
}: {
  readonly areas: typeof AREAS;
  readonly children: ReactNode;
}) {
  const [opened, { toggle, close }] = useDisclosure();
  const [location] = useLocation();
  return (
    <>
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <AppShell
        header={{ height: 56 }}
        navbar={{ width: 220, breakpoint: "sm", collapsed: { mobile: !opened } }}
        padding="md"
      >
        <AppShell.Header>
          <Group h="100%" px="md" justify="space-between" wrap="nowrap">
            <Group wrap="nowrap" gap="sm" className="shrinks">
              <Burger
                opened={opened}
                onClick={toggle}
                hiddenFrom="sm"
                size="sm"
                aria-label="Navigation"
                aria-expanded={opened}
              />
              <Brand />
            </Group>
            <UserMenu />
          </Group>
        </AppShell.Header>
        <AppShell.Navbar p="xs" aria-label="Main">
          {areas.map(({ path, title, icon }) => (
            <NavLink
              key={path}
              component={Link}
              href={path}
              label={title}
              leftSection={<Icon name={icon} />}
              active={location === path || location.startsWith(`${path}/`)}
              aria-current={location === path ? "page" : undefined}
              onClick={close}
            />
          ))}
          <NavLink
            mt="auto"
            href="/docs/quick-start"
            target="_blank"
            label="Documentation"
            leftSection={<Icon name="book" />}
          />
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1}>
          <div className="page">{children}</div>
        </AppShell.Main>
      </AppShell>
    </>
  );
}

/** A white label speaks in its own name. */
function Brand() {
  const { theme, white_label: whiteLabel, company } = useSession();
  const [isBroken, setBroken] = useState(false);
  const name = (whiteLabel.enabled ? whiteLabel.brand_name : null) ?? "ReviewRelay";
  return (
    <Group gap="xs" wrap="nowrap" className="shrinks">
      {theme.logo_url === null || isBroken ? (
        <span className="brand-mark" aria-hidden />
      ) : (
        <img
          className="brand-logo"
          src={theme.logo_url}
          alt=""
          referrerPolicy="no-referrer"
          onError={() => setBroken(true)}
        />
      )}
      <Text fw={650} truncate>
        {name}
      </Text>
      <Text c="dimmed" size="sm" truncate visibleFrom="sm">
        {company.name}
      </Text>
    </Group>
  );
}

function UserMenu() {
  const { signOut } = useSessionState();
  const { user, company } = useSession();
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <UnstyledButton>
          <VisuallyHidden>Account of {user.name}</VisuallyHidden>
          <Group gap="xs" wrap="nowrap" aria-hidden>
            <Avatar name={user.name} color="initials" radius="xl" size="sm" />
            <Text size="sm" visibleFrom="sm">
              {user.name}
            </Text>
            <Icon name="chevronDown" size={14} />
          </Group>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {user.email}
          <br />
          {roleName(user.role)} at {company.name}
        </Menu.Label>
        <Menu.Item
          leftSection={<Icon name={isDark ? "sun" : "moon"} />}
          onClick={() => setColorScheme(isDark ? "light" : "dark")}
        >
          {isDark ? "Light colours" : "Dark colours"}
        </Menu.Item>
        <Menu.Item leftSection={<Icon name="signOut" />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
