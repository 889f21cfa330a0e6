import {
  AppShell,
  Avatar,
  Box,
  Burger,
  Divider,
  Group,
  Menu,
  NavLink,
  Text,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
  VisuallyHidden,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, Suspense } from "react";
import { Link, useLocation } from "wouter";

import { roleName } from "../session/roles.ts";
import { useSession, useSessionState } from "../session/session.tsx";
import { Icon } from "../ui/icon.tsx";
import { Brand } from "./brand.tsx";
import type { Area } from "./page.tsx";
import css from "./shell.module.css";

interface ShellProps {
  readonly areas: readonly Area[];
  readonly search: ReactNode;
  readonly children: ReactNode;
}

/** Layout of every page of a signed-in user: header, navigation menu and page content. */
export function Shell({ areas, search, children }: ShellProps) {
  const [opened, { toggle, close }] = useDisclosure();
  return (
    <>
      <a className={css.skipLink} href="#content">
        Skip to the content
      </a>
      <AppShell
        header={{ height: 56 }}
        navbar={{ width: 220, breakpoint: "sm", collapsed: { mobile: !opened } }}
        padding="md"
      >
        <AppShell.Header>
          <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="sm">
            <Group wrap="nowrap" gap="xs" className="shrinks">
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
            <Group wrap="nowrap" gap="sm">
              {search}
              <UserMenu />
            </Group>
          </Group>
        </AppShell.Header>
        <AppShell.Navbar
          p="xs"
          aria-label="Main"
          className={`${css.navigation} ${opened ? "" : css.closedOnPhones}`}
        >
          <Navigation areas={areas} onChoose={close} />
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1}>
          <div className={css.page} data-page>
            {children}
          </div>
        </AppShell.Main>
      </AppShell>
    </>
  );
}

interface NavigationProps {
  readonly areas: readonly Area[];
  readonly onChoose: () => void;
}

function Navigation({ areas, onChoose }: NavigationProps) {
  const groups = Map.groupBy(
    areas.filter(({ isPersonal }) => isPersonal !== true),
    ({ group }) => group,
  );
  const own = areas.filter(({ isPersonal }) => isPersonal);
  return (
    <>
      {[...groups].map(([group, grouped]) =>
        group === undefined ? (
          <AreaLinks key="" areas={grouped} onChoose={onChoose} />
        ) : (
          <Box key={group} className={css.areas}>
            <Text size="xs" c="dimmed" fw={600} px="sm">
              {group}
            </Text>
            <AreaLinks areas={grouped} onChoose={onChoose} />
          </Box>
        ),
      )}
      {/* Separates the personal areas from those of the company. */}
      {own.length > 0 && <Divider my="xs" />}
      <AreaLinks areas={own} onChoose={onChoose} />
      <NavLink
        mt="auto"
        href="/docs/getting-started"
        target="_blank"
        label="Documentation"
        leftSection={<Icon name="book" />}
      />
    </>
  );
}

function AreaLinks({ areas, onChoose }: NavigationProps) {
  const [location] = useLocation();
  return areas.map(({ path, title, icon, Count }) => (
    <NavLink
      key={path}
      component={Link}
      href={path}
      label={title}
      leftSection={<Icon name={icon} />}
      // Hidden from screen readers, because it would be a part of the link's name. The page says the number.
      rightSection={
        Count && (
          <Suspense>
            <span aria-hidden>
              <Count />
            </span>
          </Suspense>
        )
      }
      active={location === path || location.startsWith(`${path}/`)}
      aria-current={location === path ? "page" : undefined}
      onClick={onChoose}
    />
  ));
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
          <Group gap="xs" wrap="nowrap">
            <Avatar name={user.name} color="gray" radius="xl" size="sm" aria-hidden />
            <Text size="sm" visibleFrom="sm" aria-hidden>
              {user.name}
            </Text>
            <Box visibleFrom="sm" component="span" lh={0}>
              <Icon name="chevronDown" size={14} />
            </Box>
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
          {isDark ? "Light theme" : "Dark theme"}
        </Menu.Item>
        <Menu.Item leftSection={<Icon name="signOut" />} onClick={signOut}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
