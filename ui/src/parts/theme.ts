// Light or dark: as the system says, until somebody says otherwise.
import { signal, effect } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';

const name = 'tapedeck.theme';

function stored(): Theme {
	try {
		const t = localStorage.getItem(name);
		return t === 'light' || t === 'dark' ? t : 'auto';
	} catch {
		return 'auto'; // a page from a disk may keep nothing
	}
}

export const theme = signal<Theme>(stored());
const system = matchMedia('(prefers-color-scheme: dark)');
export const dark = signal(system.matches);

effect(() => {
	const t = theme.value;
	document.documentElement.dataset.theme = t;
	dark.value = t === 'dark' || (t === 'auto' && system.matches);
	try {
		if (t === 'auto') localStorage.removeItem(name);
		else localStorage.setItem(name, t);
	} catch { /* as above */ }
});
system.addEventListener('change', () => { if (theme.value === 'auto') dark.value = system.matches; });

export const turn = () => { theme.value = dark.value ? 'light' : 'dark'; };
